package main

import (
	"context"
	"errors"
	"log/slog"
	"time"

	"sumepoller/internal/submit"
)

// kinds are the kinds of error; an error begins with its kind.
var kinds = []error{
	submit.ErrPayload, submit.ErrRefused, submit.ErrRejected, submit.ErrUnanswered,
	submit.ErrUnauthorized, submit.ErrDatabase, submit.ErrUnrecorded, submit.ErrTwoJobs, errSecret, errPanicked,
}

// kind returns the kind of an error; empty if it has none.
func kind(err error) string {
	for _, kind := range kinds {
		if errors.Is(err, kind) {
			return kind.Error()
		}
	}
	return ""
}

// report logs the summary line at any LOG_LEVEL. The line has neither the
// order's body and idempotency key nor a message of the API or of a trigger,
// which may quote them.
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
		level = slog.LevelWarn // the caller has to correct the order
	}
	r := slog.NewRecord(time.Now(), level, "submit", 0)
	r.AddAttrs(slog.String("outcome", outcome))
	r.AddAttrs(attrs...)
	r.AddAttrs(slog.Float64("elapsed_seconds", took.Round(time.Millisecond).Seconds()))
	_ = h.log.Handler().Handle(ctx, r) // there is no other place to report an error
}

// loggable returns the part of an error that may be logged.
func loggable(err error) string {
	var (
		postErr  *submit.PostError
		writeErr *submit.WriteError
	)
	switch {
	case errors.As(err, &writeErr):
		return writeErr.Brief()
	case errors.As(err, &postErr):
		return postErr.Brief()
	case errors.Is(err, submit.ErrRejected):
		return "rejected earlier, not sent again"
	case errors.Is(err, submit.ErrUnrecorded):
		return "bought earlier, neither its row nor its id could be stored"
	}
	return err.Error()
}
