package poller

import (
	"context"
	"errors"
	mathrand "math/rand/v2"
	"runtime/debug"
	"time"
)

// begin starts the read of a claimed row, or gives the row back where the run
// is over, the lease would not outlast the read, or the API has set a limit
// since the claim was sent.
func (r *run) begin(now time.Time, job Job, l *lease) {
	allowed, _ := r.meter.allow(now)
	if r.stopped != "" || allowed <= 0 || l.end.Sub(now) <= r.settings.RequestTimeout {
		r.giveBack(now, job, l, true)
		return
	}
	r.inFlight++
	r.sum.Reads++
	r.sum.Late = append(r.sum.Late, seconds(job.Late))
	r.meter.begin(now)
	go func() {
		ctx, cancel := context.WithDeadline(r.readCtx, l.end)
		defer cancel()
		answer, err := r.status(ctx, job.ID)
		took := time.Since(now)
		r.events <- func() { r.answered(time.Now(), job, l, answer, err, took) }
	}()
}

// status reads one job. A panic costs that read alone.
func (r *run) status(ctx context.Context, id string) (a Answer, err error) {
	defer func() {
		if cause := recover(); cause != nil {
			r.log.ErrorContext(ctx, "a read panicked", "job_id", id, "panic", cause, "stack", string(debug.Stack()))
			a, err = Answer{}, &ReadError{Class: Malformed, Reason: "panic", RetryAfter: -1}
		}
	}()
	return r.api.Status(ctx, id)
}

// answered takes a read that is over: an error that concerns every row stops
// reading and charges nobody, everything else is settled.
func (r *run) answered(now time.Time, job Job, l *lease, a Answer, err error, took time.Duration) {
	r.inFlight--
	r.meter.end(now)
	if r.freeSince.IsZero() {
		r.freeSince = now
	}
	var fault *ReadError
	if err != nil && !errors.As(err, &fault) {
		// Cut off by the end of the run.
		if 2*took < r.settings.RequestTimeout {
			r.giveBack(now, job, l, false)
			return
		}
		fault = &ReadError{Class: Timeout, Reason: "cut off by the end of the run", RetryAfter: -1}
	}
	if fault == nil || fault.JSON && fault.HTTPStatus < 500 || a.Window != nil {
		r.meter.answered(now, a.Window)
	}
	if r.guard.down(fault) {
		r.stop(StoppedAPIUnavailable)
	}
	r.warnAged(a)
	switch {
	case fault != nil && fault.Class == Unauthorized && fault.HTTPStatus == 0: // there was no key to send
		r.giveBack(now, job, l, false)
		r.fail(KindSecret, StoppedAPIUnavailable, fault)
	case fault != nil && fault.Class == RateLimited:
		r.sum.Errors[RateLimited]++
		r.meter.refused(now, fault.RetryAfter, a.Window)
		r.giveBack(now, job, l, false)
	default:
		r.judged(now, read{job: job, lease: l, answer: a, fault: fault, began: now.Add(-took), ended: now})
	}
}

// warnAged says once a run that a cache keeps answers for longer than the
// interval between reads: ends are then known late.
func (r *run) warnAged(a Answer) {
	interval := r.settings.DefaultInterval
	if a.NextPoll > 0 {
		interval = a.NextPoll
	}
	if a.Age > interval && !r.aged {
		r.aged = true
		r.log.WarnContext(r.ctx, "a cache answers in place of the Sume API", "age_seconds", seconds(a.Age))
	}
}

// judged settles a read, keeps it as a suspect, or ends the run for its key.
func (r *run) judged(now time.Time, read read) {
	v, cleared := r.guard.judge(read)
	for _, c := range cleared {
		r.conclude(now, c)
	}
	switch {
	case v == ofRow:
		r.conclude(now, read)
	case v == keyRefused || r.failure != nil:
		for _, s := range r.guard.clear() {
			r.sum.Errors[s.fault.Class]++
			r.giveBack(now, s.job, s.lease, false)
		}
		r.fail(KindUnauthorized, StoppedAPIUnavailable, read.fault)
	}
}

// conclude decides what a read means and puts it into the batch.
func (r *run) conclude(now time.Time, read read) {
	stretch := r.ledger.stretch(now, r.pending)
	s := r.settings.decide(read.job, read.lease.id, read.answer, read.fault, stretch, mathrand.Float64())
	r.batch = append(r.batch, s)
	r.unwritten += len(s.Final)
	if len(r.batch) == 1 {
		r.batchSince = now
	}
}

// giveBack puts a row into what is released. Unread rows were never sent.
func (r *run) giveBack(now time.Time, job Job, l *lease, unread bool) {
	if len(r.releases) == 0 {
		r.releaseSince = now
	}
	r.releases = append(r.releases, Release{JobID: job.ID, Lease: l.id, Unread: unread})
}
