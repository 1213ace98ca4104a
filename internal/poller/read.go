package poller

import (
	"context"
	"errors"
	mathrand "math/rand/v2"
	"runtime/debug"
	"time"
)

// begin starts the read of a claimed row, or gives the row back where the run
// is over or the lease would not outlast the read.
func (r *run) begin(now time.Time, job Job, l *lease) {
	if r.stopped != "" || l.end.Sub(now) <= r.settings.RequestTimeout {
		r.hold(now, job, l, true)
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
			a, err = Answer{}, &Fault{Class: Malformed, Reason: "panic", RetryAfter: -1}
		}
	}()
	return r.api.Status(ctx, id)
}

// answered takes a read that is over: trouble with every row stops reading
// and charges nobody, everything else is settled.
func (r *run) answered(now time.Time, job Job, l *lease, a Answer, err error, took time.Duration) {
	r.inFlight--
	r.meter.end(now)
	if r.freeSince.IsZero() {
		r.freeSince = now
	}
	var fault *Fault
	if err != nil && !errors.As(err, &fault) {
		// Cut off by the end of the run.
		if 2*took < r.settings.RequestTimeout {
			r.hold(now, job, l, false)
			return
		}
		fault = &Fault{Class: Timeout, Reason: "cut off by the end of the run", RetryAfter: -1}
	}
	if fault == nil || fault.JSON && fault.HTTPStatus < 500 || a.Window != nil {
		r.meter.answered(now, a.Window)
	}
	r.judgeStreak(fault)
	read := read{job: job, lease: l, answer: a, fault: fault}
	switch {
	case fault != nil && fault.Class == Unauthorized:
		r.hold(now, job, l, false)
		if fault.HTTPStatus == 0 { // nobody refused it: there was none to send
			r.fail(FailedSecret, APIUnavailable, fault)
			return
		}
		r.sum.Errors[Unauthorized]++
		r.fail(FailedKey, APIUnavailable, fault)
	case fault != nil && fault.Class == RateLimited:
		r.sum.Errors[RateLimited]++
		r.meter.refused(now, fault.RetryAfter, a.Window)
		r.hold(now, job, l, false)
	case fault != nil && fault.HTTPStatus == 403 && !r.heard:
		r.refused(now, read)
	default:
		if fault == nil || fault.HTTPStatus != 0 {
			r.hear(now)
		}
		r.conclude(now, read)
	}
}

// judgeStreak counts failures in a row such as a dead API causes. Any JSON
// answer below 500 ends the streak, whatever it says: somebody is there.
func (r *run) judgeStreak(fault *Fault) {
	if fault == nil || fault.JSON && fault.HTTPStatus < 500 || fault.Class == RateLimited || fault.Class == Unauthorized {
		r.streak = 0
		return
	}
	if fault.HTTPStatus == 0 && fault.Class == Malformed {
		return // nothing was sent
	}
	r.streak++
	if r.streak >= downStreak {
		r.stop(APIUnavailable)
	}
}

// refused keeps the first rows answered with 403 until it is clear whether
// the key is meant or the rows.
func (r *run) refused(now time.Time, read read) {
	if r.failure != nil {
		r.hold(now, read.job, read.lease, false)
		return
	}
	r.forbidden = append(r.forbidden, read)
	if len(r.forbidden) < forbiddenFirst {
		return
	}
	fault := read.fault
	for _, f := range r.forbidden {
		r.sum.Errors[HTTP4xx]++
		r.hold(now, f.job, f.lease, false)
	}
	r.forbidden = nil
	r.fail(FailedKey, APIUnavailable, fault)
}

// hear takes note that the API answers otherwise than with 403: the rows kept
// back are settled as what they are.
func (r *run) hear(now time.Time) {
	if r.heard {
		return
	}
	r.heard = true
	r.settleForbidden(now)
}

func (r *run) settleForbidden(now time.Time) {
	kept := r.forbidden
	r.forbidden = nil
	for _, f := range kept {
		r.conclude(now, f)
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

// hold puts a row into what is given back. Unread rows were never sent.
func (r *run) hold(now time.Time, job Job, l *lease, unread bool) {
	if len(r.holds) == 0 {
		r.holdsSince = now
	}
	r.holds = append(r.holds, Hold{JobID: job.ID, Lease: l.id, Unread: unread})
}
