package jobs_test

import "sumepoller/internal/pgtest"

// Short names for the helpers that nearly every test here uses.
var (
	uncounted, counted     = pgtest.Uncounted, pgtest.Counted
	claim, settle, release = pgtest.Claim, pgtest.Settle, pgtest.Release
	finish, reschedule     = pgtest.Finish, pgtest.Reschedule
	ids, outcomes          = pgtest.IDs, pgtest.Outcomes
)
