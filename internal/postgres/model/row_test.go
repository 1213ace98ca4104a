package model

import (
	"time"

	"sumepoller/internal/poller"
)

// tenure says how a row stands to its lease.
type tenure int

const (
	free    tenure = iota // never leased, or settled or released since
	running               // somebody's
	over                  // ran out unsettled, or ends later than any lease can
)

// record is what the model knows of a row and the table has to show.
type record struct {
	ID        string
	State     string
	Due       bool // pending rows only
	Lease     poller.LeaseID
	Tenure    tenure
	Lost      int
	Polls     int
	Errors    int
	Failing   bool
	LastError string
	Status    string // sume_status; unanswered where it is NULL
	Kept      bool   // the final answer is there
	Finished  bool   // finished_at is there
}

// unanswered stands for a sume_status that is NULL.
const unanswered = "(never answered)"

// row is one row of the model: its rules, without the store's SQL.
type row struct {
	record
	locked  bool          // by the older writer, in a transaction that is open
	length  time.Duration // of the lease, when it was taken
	ahead   bool          // a clock jumped: the lease ends later than any can
	failing string        // failing_since as the table showed it first
}

// claimable tells whether any claimant may have the row.
func (r *row) claimable() bool {
	return r.State == poller.StatePending && r.Due && r.Tenure != running && !r.locked
}

// recallable tells whether asking for the lease again gives the row.
func (r *row) recallable(lease poller.LeaseID) bool {
	return r.State == poller.StatePending && r.Due && r.Tenure != free && r.Lease == lease && !r.locked
}

// claim leases the row and tells whether a read is paid for.
func (r *row) claim(lease poller.LeaseID, asked time.Duration) (fresh bool) {
	fresh = r.Tenure == free || r.Lease != lease
	if fresh && r.Tenure != free {
		r.Lost++
	}
	r.Lease, r.Tenure, r.length, r.ahead = lease, running, asked, false
	for range r.Lost {
		r.length = min(4*r.length, max(asked, 15*time.Minute))
	}
	return fresh
}

// outcome is what a settlement or release under the lease has to come to.
// writes tells that it changes the row, the first time it is asked.
func (r *row) outcome(lease poller.LeaseID, state string) (want poller.Outcome, writes bool) {
	if state == "" {
		state = poller.StatePending
	}
	switch {
	case r.Lease != lease:
		return poller.Lost, false
	case r.Tenure == free && r.State == state:
		return poller.Done, false // an earlier attempt's mark
	case r.Tenure == free || r.State != poller.StatePending:
		return poller.Lost, false
	case r.locked:
		return poller.Again, false
	}
	return poller.Done, true
}

// settle does what a settlement that is done has to do.
func (r *row) settle(s poller.Settlement) {
	r.Tenure, r.Lost, r.ahead = free, 0, false
	if s.Polled {
		r.Polls++
	}
	if s.Error != "" {
		r.Errors++
		r.Failing, r.LastError = true, s.Error
	} else {
		r.Errors, r.Failing = 0, false
		if r.Status == unanswered {
			r.Status = ""
		}
	}
	if s.Status != "" {
		r.Status = s.Status
	}
	r.Due = s.State == "" && s.Delay == 0
	if s.State != "" {
		r.State, r.Finished, r.Kept = s.State, true, s.Final != nil
	}
}

// reopen does what a backfill that names the row has to do.
func (r *row) reopen() {
	if r.State != poller.StatePending {
		r.Finished, r.Errors, r.Failing, r.Lost = false, 0, false, 0
		if r.Tenure != running && !r.ahead {
			r.Lease = poller.LeaseID{}
		}
	}
	r.State, r.Due = poller.StatePending, true
}

// stop does what a stop that names the row has to do.
func (r *row) stop() {
	r.State, r.Due, r.Finished = poller.StateStopped, false, true
	r.Tenure, r.Lease, r.ahead = free, poller.LeaseID{}, false
}
