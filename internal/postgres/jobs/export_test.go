package jobs

import "time"

// SweepIn makes the next sweep due in d. A claim that comes up short still
// causes an earlier one.
func (s *Store) SweepIn(d time.Duration) {
	s.progress.mu.Lock()
	defer s.progress.mu.Unlock()
	s.progress.sweepAt = time.Now().Add(d)
}

// LeaseText writes a lease as the statements take it.
var LeaseText = leaseText

// Statements to be explained.
var (
	ClaimSQL   = claimSQL
	SettleSQL  = settleSQL
	ReleaseSQL = releaseSQL
	OutcomeSQL = outcomeSQL
	NextDueSQL = nextDueSQL
	BacklogSQL = backlogSQL
)
