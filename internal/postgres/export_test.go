package postgres

import "time"

// ClaimSQL is the claim's statement, to be explained.
const ClaimSQL = claimSQL

// SweepIn makes the store's claims sweep once d is over, and not before where
// they do not come up short.
func (s *Store) SweepIn(d time.Duration) {
	s.claim.mu.Lock()
	defer s.claim.mu.Unlock()
	s.claim.sweepAt = time.Now().Add(d)
}

// SettleSQL is the settle's statement in the form that waits, to be explained.
const SettleSQL = settleSQL

// LeaseText writes a lease as the statements take it.
var LeaseText = uuid
