package poller

import (
	"context"
	"errors"
	"time"
)

// run is one run. One goroutine, the one that calls loop, owns every field. The
// goroutines that read and write send it functions, which it calls.
type run struct {
	*Poller
	table Table
	api   Reader
	sum   Summary // Stopped is set as soon as nothing more is claimed
	err   *RunError

	ctx       context.Context    // of the invocation
	readCtx   context.Context    // of the reads
	cancel    context.CancelFunc // cancels readCtx
	deadlines deadlines
	events    chan func()

	seeker   seeker
	writer   writer
	guard    guard
	leases   leases
	warnings warnings
}

func (p *Poller) newRun(ctx context.Context, table Table, api Reader, started time.Time, sum Summary) *run {
	p.minute.start()
	if sum.Mode != ModeScheduled {
		p.minute.unblock() // an operator can end a long pause this way
	}
	p.quota.start()
	sum.Stopped = ""
	end, _ := ctx.Deadline()
	r := &run{
		Poller: p, table: table, api: api, sum: sum, ctx: ctx,
		deadlines: newDeadlines(started, p.settings.Budget, end),
		events:    make(chan func(), 2*p.settings.Concurrency+16),
		leases:    leases{},
		warnings:  warnings{log: p.log},
	}
	r.seeker = seeker{until: r.deadlines.claims, slots: slotsWanted(p.settings.Concurrency)}
	r.readCtx, r.cancel = context.WithCancel(ctx)
	return r
}

// loop starts what can be started. Then it waits for an event, the next time to
// act, or the end of the invocation, whichever comes first.
func (r *run) loop() {
	timer := time.NewTimer(0)
	defer timer.Stop()
	done := r.ctx.Done()
	for {
		wake := r.act(time.Now())
		if r.sum.Stopped != "" && r.idle() {
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

// takeEvents handles the events that have come meanwhile, so that the loop
// decides once for all of them.
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

// act starts whatever can be started now. It returns how long the loop may
// sleep where no event comes.
func (r *run) act(now time.Time) time.Duration {
	w := waker{now: now, wake: time.Hour}
	if r.sum.Stopped == "" && !now.Before(r.deadlines.claims) {
		r.stop(StoppedBudget)
	}
	if !r.deadlines.reads.IsZero() && r.minute.inFlight > 0 {
		if !now.Before(r.deadlines.reads) {
			r.cancel()
		} else {
			w.at(r.deadlines.reads)
		}
	}
	r.seek(now, &w)
	r.write(now, &w)
	if r.sum.Stopped == "" {
		w.at(r.deadlines.claims)
	}
	return w.wake
}

// waker collects the earliest time to act. Times that have passed do not count.
type waker struct {
	now  time.Time
	wake time.Duration
}

func (w *waker) at(t time.Time) {
	if d := t.Sub(w.now); d > 0 && d < w.wake {
		w.wake = d
	}
}

// endedBy returns why the invocation's context ended, as a reason of the
// summary.
func (r *run) endedBy() string {
	if errors.Is(context.Cause(r.ctx), context.DeadlineExceeded) {
		return StoppedBudget
	}
	return StoppedCanceled
}

// stop ends claiming. The first reason stays.
func (r *run) stop(reason string) {
	if r.sum.Stopped == "" {
		r.sum.Stopped = reason
	}
}

// fail ends claiming with an error. The first error stays.
func (r *run) fail(kind, reason string, err error) {
	if r.err == nil {
		r.err = &RunError{Kind: kind, Err: err}
	}
	r.stop(reason)
}

// idle reports whether nothing is in flight and nothing waits to be written.
func (r *run) idle() bool {
	return r.minute.inFlight == 0 && !r.seeker.busy && r.writer.idle() && len(r.guard.suspects) == 0
}

// background calls f, which talks to the database, in another goroutine. The
// loop calls what f returns.
func (r *run) background(f func(context.Context) func()) {
	go func() {
		ctx, cancel := r.writeContext()
		defer cancel()
		r.events <- f(ctx)
	}()
}

// writeContext returns a context for the database. It outlives the invocation's:
// what was read is recorded even when the run was cancelled.
func (r *run) writeContext() (context.Context, context.CancelFunc) {
	return context.WithDeadline(context.WithoutCancel(r.ctx), r.deadlines.write(time.Now()))
}

// backlog counts the rows that wait at the end of the run.
func (r *run) backlog() {
	ctx, cancel := r.writeContext()
	defer cancel()
	if ctx.Err() != nil || r.err != nil && r.err.Kind == KindDatabase {
		return // no time is left, or the database does not answer
	}
	b, err := r.table.Backlog(ctx)
	if err != nil {
		r.fail(KindDatabase, StoppedCanceled, err)
		return
	}
	r.sum.counted(b)
}
