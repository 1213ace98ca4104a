package main_test

import (
	"slices"
	"sync"
	"testing"

	"sumepoller/internal/poller"
	"sumepoller/internal/sume/sumetest"
)

// At any time of the day, two sandboxes together use as many reads as the pace line
// allows: with a daily limit of 200, 40 at midnight and 200 at the next midnight.
func TestDailyLimit_TwoSandboxes(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		clock       string
		least, most int // reads of all days
		apart       int // the most by which the jobs' shares may differ
	}{
		"in the first minute": {"00:00:10", 40, 41, 2},
		"at noon":             {"12:00:00", 120, 121, 2},
		"in the last minutes": {"23:50:00", 198, 199, 2},
		// Some jobs already wait when the new day begins with a fifth of its limit.
		"when midnight is near": {"23:59:56", 40, 241, 8},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newStage(t)
			s.shift(t, test.clock)
			s.due(t, sumetest.Plan{End: sumetest.Never, Hint: 1}, ids("job", 50)...)
			first, second := s.daily(t), s.daily(t)
			s.exhaust(t, first, second)
			s.share(t, test.least, test.most, test.apart)

			s.exec(t, `INSERT INTO read_budget (day, reads)
SELECT (now() AT TIME ZONE 'utc')::date + n, 200 FROM generate_series(0, 1) AS n
ON CONFLICT (day) DO UPDATE SET reads = 200`)
			s.soon(t)
			before := s.api.Stats().Reads
			for _, b := range []*sandbox{first, second, s.daily(t)} {
				if got := b.tick(t); got.Stopped != poller.StoppedDailyLimit || got.Claimed > 0 || got.ReadsToday != 200 || got.DueRemaining != 50 {
					t.Errorf("with the quota used up: %+v", got)
				}
			}
			if more := s.api.Stats().Reads - before; more > 0 {
				t.Errorf("%d reads with the quota used up", more)
			}
			s.spare(t)
		})
	}
}

func (s *stage) daily(t *testing.T) *sandbox {
	t.Helper()
	return s.sandbox(t, "SUME_READS_PER_DAY=200", "POLL_BUDGET=2s")
}

// exhaust runs the sandboxes at the same time, again and again, until none of them
// reads twice in a row.
func (s *stage) exhaust(t *testing.T, sandboxes ...*sandbox) {
	t.Helper()
	for silent := 0; silent < 2; {
		before := s.api.Stats().Reads
		var all sync.WaitGroup
		for _, b := range sandboxes {
			all.Go(func() {
				if got := b.invoke(t, ""); got.Failure != nil {
					t.Error(got.Failure)
				}
			})
		}
		all.Wait()
		if silent++; s.api.Stats().Reads > before {
			silent = 0
		}
	}
}

// share checks that the reads are within these bounds, counted, and spread evenly
// over the jobs.
func (s *stage) share(t *testing.T, least, most, apart int) {
	t.Helper()
	seen := s.api.Stats()
	if seen.Reads < least || seen.Reads > most {
		t.Errorf("%d reads, want %d to %d", seen.Reads, least, most)
	}
	if counted := s.number(t, `SELECT sum(reads)::int FROM read_budget`); counted != seen.Reads {
		t.Errorf("read_budget says %d, the API saw %d", counted, seen.Reads)
	}
	s.zero(t, `SELECT count(*) FROM read_budget WHERE reads > 200`)
	s.neverTogether(t)
	var reads []int
	for _, job := range seen.Jobs {
		reads = append(reads, job.Reads)
	}
	if slices.Max(reads)-slices.Min(reads) > apart {
		t.Errorf("reads by job: %v", reads)
	}
}
