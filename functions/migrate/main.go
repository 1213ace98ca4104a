// Command migrate is the Lambda function that brings the schema up to date, at a
// deploy or by hand. It takes any payload or none and answers the schema's version
// before and after. If the configuration names two roles, it makes or updates them,
// each with only the rights that it needs, and checks that the other functions can
// reach the database and the Sume API.
//
// It can run again, and at the same time as another migrate. Its error has one line
// for each problem, which says what to do and holds no password. Logs go to standard
// error. An invalid configuration ends the start, with one line for each error.
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
