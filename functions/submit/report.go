package main

import (
	"context"
	"errors"
	"log/slog"
	"time"

	"sumepoller/internal/submit"
)

// kinds are how an invocation can fail; an error's text begins with its kind.
var kinds = []error{
	submit.ErrPayload, submit.ErrRefused, submit.ErrRejected, submit.ErrUnanswered,
	submit.ErrUnauthorized, submit.ErrDatabase, submit.ErrUnrecorded, submit.ErrTwoJobs, errSecret, errPanicked,
}

// kind returns the kind of an error, empty where it has none.
func kind(err error) string {
	for _, kind := range kinds {
		if errors.Is(err, kind) {
			return kind.Error()
		}
	}
	return ""
}

// report writes the summary line, whatever the logger's level. It holds
// neither the order's body and idempotency key nor the API's or a trigger's
// message, which may quote them.
func (h *handler) report(ctx context.Context, result submit.Result, err error, took time.Duration) {
	level, outcome := slog.LevelInfo, "accepted"
	attrs := []slog.Attr{
		slog.String("job_id", result.JobID),
		slog.String("state", result.State),
		slog.Bool("idempotency_hit", result.IdempotencyHit),
	}
	if err != nil {
		level, outcome = slog.LevelError, kind(err)
		attrs = []slog.Attr{slog.String("error", loggable(err))}
	}
	switch {
	case errors.Is(err, submit.ErrPayload), errors.Is(err, submit.ErrRefused), errors.Is(err, submit.ErrRejected):
		level = slog.LevelWarn // the caller's to mend
	}
	r := slog.NewRecord(time.Now(), level, "submit", 0)
	r.AddAttrs(slog.String("outcome", outcome))
	r.AddAttrs(attrs...)
	r.AddAttrs(slog.Float64("elapsed_seconds", took.Round(time.Millisecond).Seconds()))
	_ = h.log.Handler().Handle(ctx, r) // what cannot be written can be told nowhere
}

// loggable returns what of an error may stand in a log.
func loggable(err error) string {
	var (
		fault   *submit.PostError
		refusal *submit.WriteError
	)
	switch {
	case errors.As(err, &refusal):
		return refusal.Brief()
	case errors.As(err, &fault):
		return fault.Brief()
	case errors.Is(err, submit.ErrRejected):
		return "rejected earlier, not sent again"
	case errors.Is(err, submit.ErrUnrecorded):
		return "bought earlier, neither its row nor its id could be stored"
	}
	return err.Error()
}
