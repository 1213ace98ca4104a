package poller

import (
	"crypto/rand"
	"time"
)

// seek claims what may be claimed, looks when the next row is due, or ends
// the run where nothing more can come of it.
func (r *run) seek(now time.Time, w *waker) {
	if r.stopped != "" || r.seeking {
		return
	}
	if r.mustLook {
		r.look(now)
		return
	}
	if now.Before(r.dueAt) && now.Before(r.lookBy) {
		r.await(now, w)
		return
	}
	if !r.ledger.known(now) {
		r.askDay()
		return
	}
	n, at, reason := r.allowed(now)
	switch {
	case n > 0 && r.worthClaim(n, now, w):
		r.claim(now, n)
	case n <= 0 && !at.IsZero() && r.idle():
		r.outOf(reason, at, now, w)
	case n <= 0:
		w.at(at)
	}
}

// await sleeps until the next row is due. Where that lies past the budget and
// nothing is under way the run is over, once a look after its last write has
// said so.
func (r *run) await(now time.Time, w *waker) {
	switch {
	case r.dueAt.Before(r.budgetEnd) || r.overdue || !r.idle():
		w.at(r.dueAt)
		w.at(r.lookBy)
	case r.lookedAt.Before(r.wroteAt):
		r.look(now)
	default:
		r.stop(StoppedDrained)
	}
}

// outOf waits until reads are allowed again, or ends a run whose budget ends
// before that. Where nothing is due there is nothing to wait for, nor does the
// minute's limit stand in the way: that is looked at first.
func (r *run) outOf(reason string, at, now time.Time, w *waker) {
	waits := at.Before(r.budgetEnd)
	matters := reason == StoppedRateLimited
	if waits {
		matters = at.Sub(now) > barrenMax
	}
	switch unseen := r.lookedAt.IsZero() || r.lookedAt.Before(r.wroteAt); {
	case matters && unseen:
		r.look(now)
	case waits:
		w.at(at)
	default:
		r.stop(reason)
	}
}

// allowed returns how many rows may be claimed now; where none, when that can
// change and what is in the way.
func (r *run) allowed(now time.Time) (n int, at time.Time, reason string) {
	if r.unwritten >= unwrittenMax {
		return 0, time.Time{}, ""
	}
	n, at = r.meter.allow(now)
	n = min(n, r.settings.Concurrency-r.inFlight)
	if n <= 0 {
		return 0, at, StoppedRateLimited
	}
	if r.settings.ReadsPerDay == 0 {
		return n, time.Time{}, ""
	}
	ceiling, at := r.ledger.ceiling(now)
	if left := ceiling - r.ledger.day.Reads; left < n {
		n = left
	}
	return n, at, StoppedDailyLimit
}

// worthClaim waits for a few free slots, or a moment, so that claims are not
// made row by row.
func (r *run) worthClaim(n int, now time.Time, w *waker) bool {
	if r.inFlight == 0 || n >= r.settings.slotsWanted() {
		return true
	}
	if later := r.freeSince.Add(claimAge); now.Before(later) {
		w.at(later)
		return false
	}
	return true
}

// claim asks for n rows and starts their reads. Where the day is tight it
// counts the pending jobs too, once a run, before the first of those reads.
func (r *run) claim(now time.Time, n int) {
	r.seeking = true
	ceiling, _ := r.ledger.ceiling(now)
	l := &lease{id: newLeaseID(), end: now.Add(r.settings.Lease)}
	r.leases[l.id] = l
	request := ClaimRequest{Lease: l.id, Limit: n, For: r.settings.Lease, PaceLine: ceiling}
	ledger, pending := r.ledger, r.pending
	go func() {
		ctx, cancel := r.finishing()
		defer cancel()
		got, err := r.table.Claim(ctx, request)
		if err != nil {
			r.events <- func() {
				r.seeking = false
				delete(r.leases, l.id)
				r.fail(KindDatabase, StoppedCanceled, err)
			}
			return
		}
		ledger.heard(time.Now(), got.Day)
		if pending < 0 && ledger.tight(time.Now()) {
			var b Backlog
			b, err = r.table.Backlog(ctx)
			pending = b.Pending
		}
		r.events <- func() {
			r.seeking, r.pending = false, pending
			if err != nil {
				r.fail(KindDatabase, StoppedCanceled, err)
			}
			r.claimed(time.Now(), request, l, got)
		}
	}()
}

func (r *run) claimed(now time.Time, request ClaimRequest, l *lease, got Claimed) {
	l.date, l.rows = got.QuotaDate, len(got.Jobs)
	if l.rows == 0 {
		delete(r.leases, l.id)
	}
	if request.PaceLine >= 0 {
		r.ledger.heard(now, got.Day)
		r.ledger.took(now, len(got.Jobs))
		r.sum.ReadsToday = got.Day.Reads
	}
	r.sum.Claimed += len(got.Jobs)
	for _, refusal := range got.Refused {
		r.sum.Errors[WriteRefused]++
		r.warnRefused(refusal)
	}
	r.freeSince = time.Time{}
	if len(got.Jobs) > 0 {
		r.barren = 0
	} else {
		r.barren++
	}
	byDay := request.PaceLine >= 0 && got.Day.Reads >= request.PaceLine
	r.mustLook = len(got.Jobs) < request.Limit && !byDay
	for _, job := range got.Jobs {
		r.begin(now, job, l)
	}
	if r.inFlight < r.settings.Concurrency {
		r.freeSince = now
	}
}

// look asks when the next row is due.
func (r *run) look(now time.Time) {
	r.seeking, r.mustLook, r.lookedAt, r.soonest = true, false, now, time.Time{}
	own := make([]LeaseID, 0, len(r.leases))
	for id := range r.leases {
		own = append(own, id)
	}
	go func() {
		ctx, cancel := r.finishing()
		defer cancel()
		in, ok, err := r.table.NextDue(ctx, own)
		r.events <- func() {
			r.seeking = false
			if err != nil {
				r.fail(KindDatabase, StoppedCanceled, err)
				return
			}
			r.looked(time.Now(), in, ok)
		}
	}()
}

func (r *run) looked(now time.Time, in time.Duration, ok bool) {
	r.lookBy = now.Add(lookEvery)
	r.overdue = ok && in <= 0
	switch {
	case !ok:
		r.dueAt = now.Add(dayLength)
	case in <= 0 && r.barren > 0:
		// Due, and yet no claim gets it: another program holds the row.
		r.dueAt = now.Add(min(claimAge<<min(r.barren, 10), barrenMax))
	default:
		r.dueAt = now.Add(in)
	}
	if !r.soonest.IsZero() {
		r.dueBy(r.soonest)
	}
}

// askDay asks where the day stands, before a run's first claim and after
// midnight.
func (r *run) askDay() {
	r.seeking = true
	go func() {
		ctx, cancel := r.finishing()
		defer cancel()
		day, err := r.table.Today(ctx)
		r.events <- func() {
			r.seeking = false
			if err != nil {
				r.fail(KindDatabase, StoppedCanceled, err)
				return
			}
			r.ledger.heard(time.Now(), day)
			r.sum.ReadsToday = day.Reads
		}
	}()
}

// dueBy takes note that a row of ours is due again then.
func (r *run) dueBy(t time.Time) {
	if t.Before(r.dueAt) {
		r.dueAt = t
	}
	if r.soonest.IsZero() || t.Before(r.soonest) {
		r.soonest = t
	}
}

func newLeaseID() LeaseID {
	var id LeaseID
	rand.Read(id[:])
	return id
}
