package main

import (
	"context"
	"crypto/rand"
	"errors"
	"time"

	"github.com/aws/aws-lambda-go/lambdacontext"

	"sumepoller/internal/operator"
	"sumepoller/internal/poller"
	"sumepoller/internal/secrets"
	"sumepoller/internal/telemetry"
)

// runID is Lambda's request id, which the answer, the logs and Lambda's own log
// lines have in common.
func runID(ctx context.Context) string {
	if lc, ok := lambdacontext.FromContext(ctx); ok && lc.AwsRequestID != "" {
		return lc.AwsRequestID
	}
	return rand.Text()
}

// report writes the summary line and the metrics line. There is no other place
// to report an error of these.
func (inv *invocation) report() {
	inv.setElapsed()
	_ = telemetry.LogSummary(inv.ctx, inv.log, inv.sum, inv.err)
	_ = telemetry.Emit(inv.metrics, telemetry.Run{
		Function: inv.function, Summary: inv.sum, Counted: inv.counted, At: time.Now(),
	})
}

// setElapsed sets the summary's duration unless a run has set it.
func (inv *invocation) setElapsed() {
	if inv.sum.ElapsedSeconds == 0 {
		inv.sum.ElapsedSeconds = time.Since(inv.started).Round(time.Millisecond).Seconds()
	}
}

// requestError returns the error of an operator request: the request's own, or a
// run error.
func (inv *invocation) requestError(err error) error {
	var invalid operator.InvalidRequest
	if errors.As(err, &invalid) {
		return invalid
	}
	return inv.runError(poller.KindDatabase, err)
}

// runError returns a run error of a kind. If a secret is the cause, it is of the
// kind secret.
func (inv *invocation) runError(kind string, err error) error {
	var secret *secrets.Error
	if errors.As(err, &secret) {
		kind = poller.KindSecret
	}
	inv.sum.Stopped = poller.StoppedCanceled
	inv.setElapsed()
	return &poller.RunError{Kind: kind, Err: err}
}

// invokerError returns the invocation's error as the invoker gets it: a run error
// is followed by the summary.
func (inv *invocation) invokerError() error {
	var failed *poller.RunError
	if !errors.As(inv.err, &failed) {
		return inv.err
	}
	return &summaryError{error: inv.err, summary: inv.sum.JSON()}
}

type summaryError struct {
	error
	summary string
}

func (e *summaryError) Error() string { return e.error.Error() + "\n" + e.summary }

func (e *summaryError) Unwrap() error { return e.error }
