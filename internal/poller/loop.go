package poller

import (
	"context"
	"errors"
	"time"
)

// loop starts what can be started, then waits for what comes first: an event,
// the next thing due by time, or the end of the invocation.
func (r *run) loop() {
	timer := time.NewTimer(0)
	defer timer.Stop()
	done := r.ctx.Done()
	for {
		wake := r.act(time.Now())
		if r.stopped != "" && r.idle() {
			return
		}
		timer.Reset(wake)
		select {
		case event := <-r.events:
			event()
			r.takeEvents()
		case <-timer.C:
		case <-done:
			done = nil
			r.stop(r.endedBy())
			r.cancel()
		}
	}
}

// takeEvents handles what else has happened, so that the loop decides once
// for all of it.
func (r *run) takeEvents() {
	for range cap(r.events) {
		select {
		case event := <-r.events:
			event()
		default:
			return
		}
	}
}

// endedBy tells a deadline from a cancellation.
func (r *run) endedBy() string {
	if errors.Is(context.Cause(r.ctx), context.DeadlineExceeded) {
		return StoppedBudget
	}
	return StoppedCanceled
}

// stop ends claiming; the first reason stays.
func (r *run) stop(reason string) {
	if r.stopped == "" {
		r.stopped = reason
	}
}

// fail ends claiming with an error; the first stays.
func (r *run) fail(kind, reason string, err error) {
	if r.failure == nil {
		r.failure = &RunError{Kind: kind, Err: err}
	}
	r.stop(reason)
}

// idle tells that nothing is under way and nothing waits to be written.
func (r *run) idle() bool {
	return r.inFlight == 0 && !r.seeking && r.writing == 0 && !r.releasing &&
		len(r.batch) == 0 && len(r.releases) == 0 && len(r.guard.suspects) == 0
}

// act starts whatever can be started now and returns how long the loop may
// sleep where no event comes.
func (r *run) act(now time.Time) time.Duration {
	w := waker{now: now, wake: time.Hour}
	if r.stopped == "" && !now.Before(r.budgetEnd) {
		r.stop(StoppedBudget)
	}
	if !r.hardEnd.IsZero() && r.inFlight > 0 {
		if !now.Before(r.hardEnd) {
			r.cancel()
		} else {
			w.at(r.hardEnd)
		}
	}
	r.seek(now, &w)
	r.write(now, &w)
	if r.stopped == "" {
		w.at(r.budgetEnd)
	}
	return w.wake
}

// waker collects the earliest time to act. Times that have passed do not
// count: what could be done about them has been.
type waker struct {
	now  time.Time
	wake time.Duration
}

func (w *waker) at(t time.Time) {
	if d := t.Sub(w.now); d > 0 && d < w.wake {
		w.wake = d
	}
}

// finishing returns a context for the database that outlives the end of the
// invocation's own: what was read is recorded even when the run was cancelled.
func (r *run) finishing() (context.Context, context.CancelFunc) {
	const most = 10 * time.Second
	ctx := context.WithoutCancel(r.ctx)
	if !r.closing.IsZero() && time.Until(r.closing) < most {
		return context.WithDeadline(ctx, r.closing)
	}
	return context.WithTimeout(ctx, most)
}

// backlog counts what waits at the end of the run.
func (r *run) backlog() {
	ctx, cancel := r.finishing()
	defer cancel()
	if ctx.Err() != nil || r.failure != nil && r.failure.Kind == KindDatabase {
		return // no time for it, or nobody to ask
	}
	b, err := r.table.Backlog(ctx)
	if err != nil {
		r.fail(KindDatabase, StoppedCanceled, err)
		return
	}
	r.sum.counted(b)
}
