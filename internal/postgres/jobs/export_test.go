package jobs

import "time"

// SweepIn makes the next sweep due in d. A claim that comes up short still
// causes an earlier one.
func (s *Store) SweepIn(d time.Duration) {
	s.claim.mu.Lock()
	defer s.claim.mu.Unlock()
	s.claim.sweepAt = time.Now().Add(d)
}

// LeaseText writes a lease as the statements take it.
var LeaseText = uuid

// Statements to be explained.
const (
	ClaimSQL   = claimSQL
	SettleSQL  = settleSQL
	ReleaseSQL = releaseSQL
	OutcomeSQL = outcomeSQL
	NextDueSQL = nextDueSQL
	BacklogSQL = backlogSQL
)
