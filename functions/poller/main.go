// Command poller is the scheduled Lambda function: each tick claims due jobs,
// reads them from the Sume API and settles what was read. It can be invoked by
// hand too, to backfill, inspect or stop.
//
// Logs go to standard error and the one line of metrics per invocation to
// standard output. A faulty configuration ends the start, with one line per
// fault.
package main

import (
	"context"
	"fmt"
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
	h, err := start(context.Background(), os.Environ())
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	telemetry.Start(h)
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

// memoryEnough is what the program needs when every answer in flight is of the
// greatest length, with room to spare: it stays within that on a larger function
// too.
const memoryEnough = 160 << 20

// limitMemory has the garbage collector keep within the function's memory, less
// a sixth for what it does not count, and within what is enough. GOMEMLIMIT,
// where it is set, wins.
func limitMemory(mebibytes string) {
	size, err := strconv.ParseInt(mebibytes, 10, 64)
	if err != nil || size < 1 || size > math.MaxInt64>>20 || os.Getenv("GOMEMLIMIT") != "" {
		return
	}
	debug.SetMemoryLimit(min(size<<20/6*5, memoryEnough))
}
