package main

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"io"
	"log/slog"
	"time"

	"github.com/aws/aws-lambda-go/lambdacontext"

	"sumepoller/internal/config"
	"sumepoller/internal/poller"
	"sumepoller/internal/secrets"
	"sumepoller/internal/sume"
	"sumepoller/internal/telemetry"
)

// handler serves invocations, one at a time. What it keeps between them holds
// no connection.
type handler struct {
	cfg      config.Poller
	function string // the function's name
	cache    *secrets.Cache
	key      *secrets.APIKey
	api      *sume.Client
	poller   *poller.Poller
	log      *slog.Logger
	metrics  io.Writer
}

func newHandler(cfg config.Poller, function string, cache *secrets.Cache, stdout, stderr io.Writer) (*handler, error) {
	key := secrets.NewAPIKey(cache, cfg.Sume.APIKeySecretID)
	api, err := sume.NewClient(sume.Config{
		BaseURL: cfg.Sume.BaseURL, KeyHeader: cfg.Sume.KeyHeader(), Timeout: cfg.Sume.RequestTimeout,
	}, key)
	if err != nil {
		return nil, err
	}
	log := telemetry.NewLogger(stderr, cfg.LogLevel)
	return &handler{
		cfg: cfg, function: function, cache: cache, key: key, api: api, log: log, metrics: stdout,
		poller: poller.New(poller.Settings{
			Budget:          cfg.Poll.Budget,
			Concurrency:     cfg.Poll.Concurrency,
			Lease:           cfg.Poll.Lease,
			RequestTimeout:  cfg.Sume.RequestTimeout,
			DefaultInterval: cfg.Poll.DefaultInterval,
			MinInterval:     cfg.Poll.MinInterval,
			MaxInterval:     cfg.Poll.MaxInterval,
			BackoffMax:      cfg.Poll.BackoffMax,
			ReadsPerMinute:  cfg.Reads.PerMinute,
			ReadsPerDay:     cfg.Reads.PerDay,
		}, log),
	}, nil
}

var errPanicked = errors.New("panic: the run did not come to its end")

// Invoke serves one invocation: lambda.Handler, since a handler with a typed
// event refuses an empty payload.
func (h *handler) Invoke(ctx context.Context, payload []byte) ([]byte, error) {
	inv := &invocation{handler: h, ctx: ctx, started: time.Now(), err: errPanicked}
	inv.sum = poller.NewSummary(runID(ctx), "")
	defer inv.report() // in a panic too
	answer, err := inv.serve(payload)
	inv.err = err
	if err != nil {
		return nil, inv.failure()
	}
	return json.Marshal(answer)
}

// runID is the request's id, so that the answer, the logs and Lambda's own
// lines can be put together.
func runID(ctx context.Context) string {
	if lc, ok := lambdacontext.FromContext(ctx); ok && lc.AwsRequestID != "" {
		return lc.AwsRequestID
	}
	return rand.Text()
}

// report writes the summary line and the metrics line. What cannot be written
// can be told nowhere.
func (inv *invocation) report() {
	inv.elapsed()
	_ = telemetry.LogSummary(inv.ctx, inv.log, inv.sum, inv.err)
	_ = telemetry.Emit(inv.metrics, telemetry.Run{
		Function: inv.function, Summary: inv.sum, Counted: inv.counted, At: time.Now(),
	})
}

// failure returns the invocation's error as the invoker sees it: with the
// summary behind it, unless the payload was refused before anything ran.
func (inv *invocation) failure() error {
	var failed *poller.RunError
	if !errors.As(inv.err, &failed) {
		return inv.err
	}
	return &runError{text: inv.err.Error() + "\n" + inv.sum.JSON(), err: inv.err}
}

type runError struct {
	text string
	err  error
}

func (e *runError) Error() string { return e.text }

func (e *runError) Unwrap() error { return e.err }
