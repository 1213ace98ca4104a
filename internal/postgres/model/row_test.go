package model

import (
	"time"

	"sumepoller/internal/operator"
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
	NotFound  int
	Failing   bool
	LastError string
	Status    string // sume_status; unanswered where it is NULL
	Kept      bool   // the final answer is there
	Finished  bool   // finished_at is there
}

const (
	unanswered = "(never answered)" // stands for a sume_status that is NULL
	deleted    = "(deleted)"        // the state of a row that is gone
)

// row is one row of the model: its rules, without the store's SQL.
type row struct {
	record
	locked   bool          // by the older writer, in a transaction that is open
	length   time.Duration // of the lease, when it was taken
	ahead    bool          // a clock jumped: the lease ends later than any can
	failing  string        // failing_since as the table showed it first
	charged  charge        // the day whose count the read under the lease was taken from
	refusals map[write]how // what the table refuses

	place  int64 // next_poll_at as the table showed it last, microseconds since the epoch
	moved  bool  // next_poll_at may have changed since
	behind bool  // it has to be later than all that were due at the last look
}

// claimable reports whether a claim may lock the row to lease it. The table may
// refuse that.
func (r *row) claimable() bool {
	return r.State == poller.StatePending && r.Due && r.Tenure != running && !r.locked
}

// recallable reports whether asking for the lease again finds the row.
func (r *row) recallable(lease poller.LeaseID) bool {
	return r.State == poller.StatePending && r.Due && r.Tenure != free && r.Lease == lease && !r.locked
}

// claimRefusal returns what a claim under the lease has to report of the row,
// nil where the table takes it. A row that a trigger leaves as it is keeps the
// lease that it has.
func (r *row) claimRefusal(lease poller.LeaseID) *poller.WriteError {
	h := r.refusals[onClaim]
	if h == "" || h == keepOld && r.Lease == lease && (r.Tenure == running || r.ahead) {
		return nil
	}
	return r.refusal(h, poller.WriteClaim)
}

// claim leases the row and reports whether a read is paid for.
func (r *row) claim(lease poller.LeaseID, asked time.Duration, day charge) (fresh bool) {
	if r.refusals[onClaim] == keepOld {
		return false // see claimRefusal
	}
	fresh = r.Tenure == free || r.Lease != lease
	if fresh {
		r.charged = day
		if r.Tenure != free {
			r.Lost++
		}
	}
	r.Lease, r.Tenure, r.length, r.ahead = lease, running, asked, false
	for range r.Lost {
		r.length = min(4*r.length, max(asked, 15*time.Minute))
	}
	return fresh
}

// outcome is what a settlement or release under the lease has to come to where
// the table refuses nothing. writes reports that it changes the row, the first
// time it is asked.
func (r *row) outcome(lease poller.LeaseID, state string) (want poller.Outcome, writes bool) {
	if state == "" {
		state = poller.StatePending
	}
	switch {
	case r.State == deleted:
		return poller.Missing, false
	case r.Lease != lease:
		return poller.LeaseLost, false
	case r.Tenure == free && r.State == state:
		return poller.Written, false // an earlier attempt's mark
	case r.Tenure == free && r.State == poller.StatePending:
		return poller.Refused, false // an earlier attempt, and a trigger turned the finish back into pending
	case r.Tenure == free || r.State != poller.StatePending:
		return poller.LeaseLost, false
	case r.locked:
		return poller.Locked, false
	}
	return poller.Written, true
}

// settlement returns what a settlement has to come to, and does to the row what
// that stands for once effect is called.
func (r *row) settlement(s poller.Settlement) (want poller.Result, effect func()) {
	outcome, writes := r.outcome(s.Lease, s.State)
	if s.Class == poller.WriteRefused && r.halfWritten(s.Lease) {
		// The error that follows a write which the table kept in part.
		outcome, writes = poller.Written, true
		if r.locked {
			outcome, writes = poller.Locked, false
		}
	}
	want.Outcome = outcome
	if outcome == poller.Written {
		want.State = s.State
	}
	effect = func() {}
	if outcome == poller.Refused {
		want.Error = r.refusal(reopen, poller.WriteSettle)
	}
	if !writes {
		return want, effect
	}
	effect = func() { r.settle(s) }
	h := r.refusals[writeOf(s)]
	switch {
	case h == "", h == past && s.Delay <= 0:
	case h == answer && s.Final == nil:
	case h == answer:
		s.Final = nil
		want.Error = r.refusal(h, poller.WriteFinalStatus)
	default:
		want = poller.Result{Outcome: poller.Refused, Error: r.refusal(h, poller.WriteSettle)}
		if h != reopen && h != past {
			return want, func() {}
		}
		effect = func() {
			r.settle(s)
			r.State, r.Due = poller.StatePending, s.Delay <= 0 || h == past
		}
	}
	return want, effect
}

// halfWritten reports whether a trigger changed what was settled under the
// lease: a finish back into pending, or a row that was read to be due.
func (r *row) halfWritten(lease poller.LeaseID) bool {
	return r.State == poller.StatePending && r.Tenure == free && r.Lease == lease && (r.Finished || r.Due)
}

// settle does what a settlement that is written has to do.
func (r *row) settle(s poller.Settlement) {
	if s.Polled && r.Tenure != free {
		r.Polls++
	}
	r.Tenure, r.Lost, r.ahead, r.moved = free, 0, false, true
	r.NotFound = s.NotFound
	if s.Error != "" {
		r.Errors++
		r.Failing, r.LastError = true, s.Error
	} else {
		r.Errors, r.Failing, r.failing = 0, false, ""
		if r.Status == unanswered {
			r.Status = ""
		}
	}
	if s.Status != "" {
		r.Status = s.Status
	}
	r.Due = s.State == "" && s.Delay <= 0
	r.Finished = s.State != ""
	if s.State != "" {
		r.State, r.Kept = s.State, s.Final != nil
	}
}

// release returns what a release has to come to, and does to the row what that
// stands for once effect is called. free reports that a read is given back.
func (r *row) release(lease poller.LeaseID, unread bool) (want poller.Result, frees bool, effect func()) {
	outcome, writes := r.outcome(lease, "")
	want.Outcome, effect = outcome, func() {}
	if !writes {
		return want, false, effect
	}
	if h := r.refusals[onRelease]; h != "" {
		return poller.Result{Outcome: poller.Refused, Error: r.refusal(h, poller.WriteRelease)}, false, effect
	}
	return want, unread, func() {
		r.Tenure, r.ahead = free, false
		if !unread {
			r.Due, r.moved, r.behind = true, true, true
		}
	}
}

// reopen does what a backfill that names the row has to do.
func (r *row) reopen() {
	if r.State != poller.StatePending {
		r.Finished, r.Errors, r.Failing, r.failing, r.Lost = false, 0, false, "", 0
		if r.Tenure != running {
			r.Lease = poller.LeaseID{}
		}
	}
	r.State, r.Due, r.moved = poller.StatePending, true, true
}

// stop does what a stop that names the row has to do.
func (r *row) stop() {
	r.State, r.Due, r.Finished = operator.StateStopped, false, true
	r.Tenure, r.Lease, r.ahead = free, poller.LeaseID{}, false
}
