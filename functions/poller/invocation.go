package main

import (
	"cmp"
	"context"
	"errors"
	"time"

	"sumepoller/internal/operator"
	"sumepoller/internal/poller"
	"sumepoller/internal/secrets"
)

// invocation is one call of the function.
type invocation struct {
	*handler
	ctx     context.Context
	started time.Time
	sum     poller.Summary
	counted bool // sum.Backlog was read
	err     error
}

// serve does what the payload asks and returns the answer. Where the work
// could not be done the error is a *poller.Failure.
func (inv *invocation) serve(payload []byte) (any, error) {
	request, err := operator.ParseRequest(payload)
	if err != nil {
		return nil, err
	}
	inv.sum.Mode = cmp.Or(request.Mode, poller.ModeScheduled)
	inv.cache.Rearm()
	ctx, cancel := inv.within()
	defer cancel()
	if reads(request) {
		if _, err := inv.key.Key(ctx); err != nil {
			return nil, inv.fail(poller.KindSecret, err)
		}
	}
	table, disconnect, err := inv.connect(ctx)
	if err != nil {
		return nil, inv.fail(poller.KindDatabase, err)
	}
	defer disconnect()
	defer inv.api.CloseIdle()
	return inv.do(ctx, request, table)
}

// reads tells whether the request leads to reads of the API.
func reads(r operator.Request) bool {
	return r.Mode == "" || r.Mode == operator.ModeBackfill && !r.Backfill.DryRun
}

// within bounds what comes before and beside the reads, so that an answer is
// given before the function's limit.
func (inv *invocation) within() (context.Context, context.CancelFunc) {
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
			inv.elapsed()
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
		return inv.failByHand(err)
	}
	inv.sum.Registered, inv.sum.Reopened, inv.sum.Note = done.Registered, done.Reopened, done.Note
	if !b.DryRun {
		return nil // the run that follows counts what waits
	}
	inv.sum.Stopped = poller.StoppedDrained // nothing was to be read
	waits, err := t.Backlog(ctx)
	if err != nil {
		return inv.fail(poller.KindDatabase, err)
	}
	inv.sum.Backlog, inv.sum.DueRemaining, inv.sum.ReadsToday = waits, waits.Due, waits.ReadsToday
	inv.sum.OldestDueSeconds = waits.OldestDue.Round(time.Millisecond).Seconds()
	return nil
}

func (inv *invocation) inspect(ctx context.Context, q operator.Inspect, t table) (any, error) {
	found, err := t.Inspect(ctx, q, inv.cfg.Reads.PerDay)
	if err != nil {
		return nil, inv.failByHand(err)
	}
	found.RunID = inv.sum.RunID
	return found, nil
}

func (inv *invocation) stop(ctx context.Context, s operator.Stop, t table) (any, error) {
	stopped, err := t.Stop(ctx, s)
	if err != nil {
		return nil, inv.failByHand(err)
	}
	stopped.RunID = inv.sum.RunID
	inv.sum.Finished = stopped.Finished
	return stopped, nil
}

// failByHand returns the error of an operator's payload: the payload's own, or
// the database's.
func (inv *invocation) failByHand(err error) error {
	var refused operator.InvalidRequest
	if errors.As(err, &refused) {
		return refused
	}
	return inv.fail(poller.KindDatabase, err)
}

// fail returns a run's failure; a secret that a part needed is named as one.
func (inv *invocation) fail(kind string, err error) error {
	var secret *secrets.Error
	if errors.As(err, &secret) {
		kind = poller.KindSecret
	}
	inv.sum.Stopped = poller.StoppedCanceled
	inv.elapsed()
	return &poller.RunError{Kind: kind, Err: err}
}

// elapsed tells how long the invocation has taken, where no run did.
func (inv *invocation) elapsed() {
	if inv.sum.ElapsedSeconds == 0 {
		inv.sum.ElapsedSeconds = time.Since(inv.started).Round(time.Millisecond).Seconds()
	}
}
