// Command cli sends one operator request or one order; see package cli.
package main

import (
	"context"
	"os"
	"os/signal"
	"syscall"

	"sumepoller/internal/cli"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP)
	code := cli.Run(ctx, os.Args[1:], os.Stdin, os.Stdout, os.Stderr)
	stop()
	os.Exit(code)
}
