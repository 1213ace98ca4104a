package poller

import (
	"context"
	"time"
)

// seek does what the seeker decides.
func (r *run) seek(now time.Time, w *waker) {
	if r.sum.Stopped != "" || r.seeker.busy {
		return
	}
	next := r.seeker.next(now, r.idle())
	if next.do == actionClaim {
		if !r.quota.known(now) {
			r.askDay()
			return
		}
		next = r.seeker.claim(now, r.allowed(now), r.minute.inFlight, r.idle())
	}
	switch next.do {
	case actionWait:
		w.at(next.at)
	case actionLook:
		r.look(now)
	case actionClaim:
		r.claim(now, next.rows)
	case actionStop:
		r.stop(next.reason)
	}
}

// allowed returns how many rows may be claimed now.
func (r *run) allowed(now time.Time) allowance {
	if r.writer.full() {
		return allowance{}
	}
	rows, at := r.minute.allow(now)
	rows = min(rows, r.settings.Concurrency-r.minute.inFlight)
	if rows <= 0 {
		return allowance{at: at, reason: StoppedRateLimited}
	}
	maxReads, at := r.quota.maxReads(now)
	if maxReads < 0 {
		return allowance{rows: rows}
	}
	return allowance{rows: max(0, min(rows, maxReads-r.quota.day.Reads)), at: at, reason: StoppedDailyLimit}
}

// claim asks for rows and starts their reads. If the quota is tight, it counts
// the pending jobs before the first of these reads.
func (r *run) claim(now time.Time, rows int) {
	maxReads, _ := r.quota.maxReads(now)
	l := r.leases.add(now.Add(r.settings.Lease))
	request := ClaimRequest{Lease: l.id, Limit: rows, For: r.settings.Lease, PaceLine: maxReads}
	quota := r.quota // a copy, since the loop owns the quota
	r.ask(func(ctx context.Context) (func(), error) {
		got, err := r.table.Claim(ctx, request)
		if err != nil {
			return func() { r.leases.claimed(l.id, "", 0) }, err
		}
		quota.update(time.Now(), got.Day)
		if quota.needsPending(time.Now()) {
			var b Backlog
			b, err = r.table.Backlog(ctx)
			quota.pending = b.Pending
		}
		return func() {
			r.quota.pending = quota.pending
			r.claimed(time.Now(), request, l, got)
		}, err
	})
}

// claimed starts the reads of the claimed rows.
func (r *run) claimed(now time.Time, request ClaimRequest, l *lease, got Claimed) {
	r.leases.claimed(l.id, got.QuotaDate, len(got.Jobs))
	counted := request.PaceLine >= 0
	if counted {
		r.quota.update(now, got.Day)
		r.quota.took(now, len(got.Jobs))
		r.sum.ReadsToday = got.Day.Reads
	}
	r.sum.Claimed += len(got.Jobs)
	for _, e := range got.Refused {
		r.sum.Errors[WriteRefused]++
		r.warnings.refused(r.ctx, e)
	}
	r.seeker.claimed(request.Limit, len(got.Jobs), counted && got.Day.Reads >= request.PaceLine)
	for _, job := range got.Jobs {
		r.begin(now, job, l)
	}
	if r.minute.inFlight < r.settings.Concurrency {
		r.seeker.slotFree(now)
	}
}

// look asks when the next row is due.
func (r *run) look(now time.Time) {
	r.seeker.look(now)
	own := r.leases.ids()
	r.ask(func(ctx context.Context) (func(), error) {
		in, ok, err := r.table.NextDue(ctx, own)
		return func() { r.seeker.looked(time.Now(), in, ok) }, err
	})
}

// askDay asks for the day's reads, before a run's first claim and after
// midnight.
func (r *run) askDay() {
	r.ask(func(ctx context.Context) (func(), error) {
		day, err := r.table.Today(ctx)
		return func() {
			if err == nil {
				r.quota.update(time.Now(), day)
				r.sum.ReadsToday = day.Reads
			}
		}, err
	})
}

// ask runs one of the seeker's queries in the background. The loop calls the
// function that it returns, also after an error.
func (r *run) ask(question func(context.Context) (func(), error)) {
	r.seeker.busy = true
	r.background(func(ctx context.Context) func() {
		then, err := question(ctx)
		return func() {
			r.seeker.busy = false
			if err != nil {
				r.fail(KindDatabase, StoppedCanceled, err)
			}
			then()
		}
	})
}
