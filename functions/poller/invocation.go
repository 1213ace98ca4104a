package main

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"time"

	"sumepoller/internal/operator"
	"sumepoller/internal/poller"
)

// invocation is one call of the function.
type invocation struct {
	*handler
	ctx     context.Context
	started time.Time
	sum     poller.Summary
	counted bool // sum.Backlog is set
	err     error
}

var errPanicked = errors.New("panic: the run did not reach its end")

// Invoke serves one invocation. It implements lambda.Handler, since a typed
// handler refuses an empty payload.
func (h *handler) Invoke(ctx context.Context, payload []byte) ([]byte, error) {
	inv := &invocation{handler: h, ctx: ctx, started: time.Now(), err: errPanicked}
	inv.sum = poller.NewSummary(runID(ctx), "")
	defer inv.report() // in a panic too
	answer, err := inv.serve(payload)
	inv.err = err
	if err != nil {
		return nil, inv.invokerError()
	}
	return json.Marshal(answer)
}

// serve does what the payload asks for and returns the answer. The error is the
// payload's, or a *poller.RunError if the work could not be done.
func (inv *invocation) serve(payload []byte) (any, error) {
	request, err := operator.ParseRequest(payload)
	if err != nil {
		return nil, err
	}
	inv.sum.Mode = cmp.Or(request.Mode, poller.ModeScheduled)
	inv.cache.Rearm()
	ctx, cancel := inv.beforeReserve()
	defer cancel()
	if callsAPI(request) {
		if _, err := inv.key.Key(ctx); err != nil {
			return nil, inv.runError(poller.KindSecret, err)
		}
	}
	table, disconnect, err := inv.connect(ctx)
	if err != nil {
		return nil, inv.runError(poller.KindDatabase, err)
	}
	defer disconnect()
	defer inv.api.CloseIdle()
	return inv.do(ctx, request, table)
}

// callsAPI reports whether the request leads to reads.
func callsAPI(r operator.Request) bool {
	return r.Mode == "" || r.Mode == operator.ModeBackfill && !r.Backfill.DryRun
}

// beforeReserve returns a context for everything but the reads. It ends when
// the reserve begins, so that there is time for the answer.
func (inv *invocation) beforeReserve() (context.Context, context.CancelFunc) {
	deadline, ok := inv.ctx.Deadline()
	if !ok {
		return context.WithCancel(inv.ctx)
	}
	return context.WithDeadline(inv.ctx, deadline.Add(-poller.Reserve(deadline.Sub(inv.started))))
}

func (inv *invocation) do(ctx context.Context, request operator.Request, t table) (any, error) {
	switch request.Mode {
	case operator.ModeInspect:
		return inv.inspect(ctx, *request.Inspect, t)
	case operator.ModeStop:
		return inv.stop(ctx, *request.Stop, t)
	case operator.ModeBackfill:
		if err := inv.backfill(ctx, *request.Backfill, t); err != nil || request.Backfill.DryRun {
			inv.setElapsed()
			return inv.sum, err
		}
	}
	var err error
	inv.sum, err = inv.poller.Run(inv.ctx, t, inv.api, inv.started, inv.sum)
	return inv.sum, err
}

func (inv *invocation) backfill(ctx context.Context, b operator.Backfill, t table) error {
	done, err := t.Backfill(ctx, b, b.Pace(inv.cfg.Reads.PerMinute, inv.cfg.Reads.PerDay))
	if err != nil {
		return inv.requestError(err)
	}
	inv.sum.Registered, inv.sum.Reopened, inv.sum.Note = done.Registered, done.Reopened, done.Note
	if !b.DryRun {
		return nil // the run that follows counts the backlog
	}
	inv.sum.Stopped = poller.StoppedDrained // there was nothing to read
	backlog, err := t.Backlog(ctx)
	if err != nil {
		return inv.runError(poller.KindDatabase, err)
	}
	inv.sum.Backlog, inv.sum.DueRemaining, inv.sum.ReadsToday = backlog, backlog.Due, backlog.ReadsToday
	inv.sum.OldestDueSeconds = backlog.OldestDue.Round(time.Millisecond).Seconds()
	return nil
}

func (inv *invocation) inspect(ctx context.Context, q operator.Inspect, t table) (any, error) {
	found, err := t.Inspect(ctx, q, inv.cfg.Reads.PerDay)
	if err != nil {
		return nil, inv.requestError(err)
	}
	found.RunID = inv.sum.RunID
	return found, nil
}

func (inv *invocation) stop(ctx context.Context, s operator.Stop, t table) (any, error) {
	stopped, err := t.Stop(ctx, s)
	if err != nil {
		return nil, inv.requestError(err)
	}
	stopped.RunID = inv.sum.RunID
	inv.sum.Finished = stopped.Finished
	return stopped, nil
}
