// Command submit is the Lambda function that buys a job. It stores the intent,
// makes the paid post and records the job for the poller. One order is paid for
// once. A person or a program invokes it, never a schedule.
//
// Logs go to standard error, one summary line per invocation. An invalid
// configuration ends the start, with one line per error.
package main

import (
	"context"
	"os"

	"sumepoller/internal/config"
	"sumepoller/internal/secrets"
	"sumepoller/internal/telemetry"
)

func main() {
	telemetry.Start(start(context.Background(), os.Environ()))
}

func start(ctx context.Context, environ []string) (*handler, error) {
	cfg, err := config.LoadSubmit(environ)
	if err != nil {
		return nil, err
	}
	if warning := config.Unknown(environ); warning != "" {
		telemetry.NewLogger(os.Stderr, cfg.LogLevel).WarnContext(ctx, warning)
	}
	manager, err := secrets.NewManager(ctx)
	if err != nil {
		return nil, err
	}
	return newHandler(cfg, secrets.NewCache(manager), os.Stderr)
}
