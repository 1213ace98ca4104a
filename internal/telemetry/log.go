package telemetry

import (
	"context"
	"io"
	"log/slog"
	"time"

	"github.com/aws/aws-lambda-go/lambdacontext"

	"sumepoller/internal/poller"
)

// NewLogger returns a logger that writes one JSON object per line. A context of
// an invocation adds its request id. Time, level and message have the names that
// Lambda reads.
func NewLogger(w io.Writer, level slog.Level) *slog.Logger {
	return slog.New(handler{slog.NewJSONHandler(w, &slog.HandlerOptions{Level: level, ReplaceAttr: lambdacontext.ReplaceAttr})})
}

type handler struct{ slog.Handler }

func (h handler) Handle(ctx context.Context, r slog.Record) error {
	if lc, ok := lambdacontext.FromContext(ctx); ok {
		r.AddAttrs(slog.String("request_id", lc.AwsRequestID))
	}
	return h.Handler.Handle(ctx, r)
}

func (h handler) WithAttrs(attrs []slog.Attr) slog.Handler {
	return handler{h.Handler.WithAttrs(attrs)}
}

func (h handler) WithGroup(name string) slog.Handler { return handler{h.Handler.WithGroup(name)} }

// LogSummary writes a run's summary as one line, with the error that the run
// ended with, if any. Its level is INFO and the logger's own level does not
// matter: the dashboard reads the line.
func LogSummary(ctx context.Context, log *slog.Logger, s poller.Summary, err error) error {
	r := slog.NewRecord(time.Now(), slog.LevelInfo, "run", 0)
	r.AddAttrs(
		slog.Any("summary", s),
		slog.Int("pending", s.Backlog.Pending),
		slog.Int("failing", s.Backlog.Failing),
		slog.Float64("oldest_pending_seconds", seconds(s.Backlog.OldestPending)),
		slog.Int("stuck_submissions", s.Backlog.StuckSubmissions),
	)
	if err != nil {
		r.AddAttrs(slog.String("error", err.Error()))
	}
	return log.Handler().Handle(ctx, r)
}
