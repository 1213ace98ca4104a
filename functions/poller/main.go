// Command poller is the scheduled Lambda function: each tick claims due jobs,
// reads their status from the Sume API and settles them. It serves operator
// requests too: backfill, inspect and stop.
//
// Logs go to standard error, and one line of metrics per invocation to standard
// output. An invalid configuration ends the start, with one line per error.
package main

import (
	"context"
	"math"
	"os"
	"runtime/debug"
	"strconv"

	"sumepoller/internal/config"
	"sumepoller/internal/secrets"
	"sumepoller/internal/telemetry"
)

func main() {
	limitMemory(os.Getenv(config.FunctionMemory))
	telemetry.Start(start(context.Background(), os.Environ()))
}

func start(ctx context.Context, environ []string) (*handler, error) {
	cfg, err := config.LoadPoller(environ)
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
	return newHandler(cfg, os.Getenv(config.FunctionName), secrets.NewCache(manager), os.Stdout, os.Stderr)
}

// memoryEnough is more than the program needs, even if every answer in flight
// has the maximum length. In a larger function it uses no more.
const memoryEnough = 160 << 20

// limitMemory sets the garbage collector's limit: the function's memory less a
// sixth, for memory that the collector does not count, and at most memoryEnough.
// GOMEMLIMIT takes precedence.
func limitMemory(mebibytes string) {
	size, err := strconv.ParseInt(mebibytes, 10, 64)
	if err != nil || size < 1 || size > math.MaxInt64>>20 || os.Getenv("GOMEMLIMIT") != "" {
		return
	}
	debug.SetMemoryLimit(min(size<<20/6*5, memoryEnough))
}
