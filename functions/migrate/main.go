// Command migrate is the Lambda function that brings the database to the
// schema, at a deploy or by hand. It takes any payload or none and answers the
// schema's version before and after. Given the names of two roles, it makes them
// or brings them up to date, each with the rights it needs and no more, and
// checks that all that the other functions need can be reached.
//
// It may run again, and at the same time as another. An error is one line for
// each fault, which names the cure and holds no password; logs go to standard
// error. A faulty configuration ends the start, with one line per fault.
package main

import (
	"context"
	"fmt"
	"os"

	"sumepoller/internal/config"
	"sumepoller/internal/secrets"
	"sumepoller/internal/telemetry"
)

func main() {
	h, err := start(context.Background(), os.Environ())
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	telemetry.Start(h)
}

func start(ctx context.Context, environ []string) (*handler, error) {
	cfg, err := config.LoadMigrate(environ)
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
	return &handler{cfg: cfg, cache: secrets.NewCache(manager), log: telemetry.NewLogger(os.Stderr, cfg.LogLevel)}, nil
}
