package poller

import (
	"context"
	"errors"
	mathrand "math/rand/v2"
	"runtime/debug"
	"time"
)

// read is a read that has ended.
type read struct {
	job    Job
	lease  *lease
	answer Answer
	err    *ReadError
	began  time.Time
	ended  time.Time
}

// begin starts the read of a claimed row. It releases the row if the run has
// stopped, if the lease would expire before the read's timeout, or if the API
// has set a limit since the claim was sent.
func (r *run) begin(now time.Time, job Job, l *lease) {
	allowed, _ := r.minute.allow(now)
	if r.sum.Stopped != "" || allowed <= 0 || l.end.Sub(now) <= r.settings.RequestTimeout {
		r.giveBack(now, job, l, true)
		return
	}
	r.sum.Reads++
	r.sum.Late = append(r.sum.Late, seconds(job.Late))
	r.minute.begin(now)
	go func() {
		ctx, cancel := context.WithDeadline(r.readCtx, l.end)
		defer cancel()
		answer, err := r.status(ctx, job.ID)
		took := time.Since(now)
		r.events <- func() { r.answered(time.Now(), job, l, answer, err, took) }
	}()
}

// status reads one job. A panic is an error of this read alone.
func (r *run) status(ctx context.Context, id string) (a Answer, err error) {
	defer func() {
		if cause := recover(); cause != nil {
			r.log.ErrorContext(ctx, "a read panicked", "job_id", id, "panic", cause, "stack", string(debug.Stack()))
			a, err = Answer{}, &ReadError{Class: Malformed, Reason: "panic"}
		}
	}()
	return r.api.Status(ctx, id)
}

// answered takes a read that has ended. If the error concerns every row, it
// releases the row. Otherwise it settles it.
func (r *run) answered(now time.Time, job Job, l *lease, a Answer, err error, took time.Duration) {
	r.minute.end(now)
	r.seeker.slotFree(now)
	var readErr *ReadError
	if err != nil && !errors.As(err, &readErr) {
		// The end of the run cut the read off.
		if 2*took < r.settings.RequestTimeout {
			r.giveBack(now, job, l, false)
			return
		}
		readErr = &ReadError{Class: Timeout, Reason: "cut off by the end of the run"}
	}
	if readErr.fromAPI() || a.Window != nil {
		r.minute.update(now, a.Window)
	}
	if r.guard.apiDown(readErr) {
		r.stop(StoppedAPIUnavailable)
	}
	interval := r.settings.DefaultInterval
	if a.NextPoll > 0 {
		interval = a.NextPoll
	}
	r.warnings.cached(r.ctx, a.Age, interval)
	if readErr != nil && readErr.Class == RateLimited {
		r.sum.Errors[RateLimited]++
		r.minute.refused(now, readErr.RetryAfter, a.Window)
		r.giveBack(now, job, l, false)
		return
	}
	if readErr != nil && readErr.Class == Unauthorized && readErr.HTTPStatus == 0 { // there was no key to send
		r.giveBack(now, job, l, false)
		r.fail(KindSecret, StoppedAPIUnavailable, readErr)
		return
	}
	r.judge(now, read{job: job, lease: l, answer: a, err: readErr, began: now.Add(-took), ended: now})
}

// judge settles a read, keeps it as a suspect, or ends the run because of the
// key.
func (r *run) judge(now time.Time, read read) {
	v, cleared := r.guard.judge(read)
	for _, c := range cleared {
		r.conclude(now, c)
	}
	if v == ofRow {
		r.conclude(now, read)
	} else if v == keyRefused || r.err != nil {
		for _, s := range r.guard.clear() {
			r.sum.Errors[s.err.Class]++
			r.giveBack(now, s.job, s.lease, false)
		}
		r.fail(KindUnauthorized, StoppedAPIUnavailable, read.err)
	}
}

// conclude decides what a read means and hands the settlement to the writer.
func (r *run) conclude(now time.Time, read read) {
	s := r.settings.decide(read.job, read.lease.id, read.answer, read.err, r.quota.stretch(now), mathrand.Float64())
	r.writer.settle(now, s)
}

// giveBack hands a row's release to the writer. Unread means that its read was
// never sent.
func (r *run) giveBack(now time.Time, job Job, l *lease, unread bool) {
	r.writer.release(now, Release{JobID: job.ID, Lease: l.id, Unread: unread})
}
