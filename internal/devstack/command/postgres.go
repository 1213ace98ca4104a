package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"syscall"
	"time"

	"sumepoller/internal/devstack/environment"
	"sumepoller/internal/devstack/process"
	"sumepoller/internal/devstack/server"
)

const (
	urlVariable = "DEV_DATABASE_URL"
	grace       = 15 * time.Second // from SIGINT to SIGKILL
)

// postgres runs a command with a database server and returns its exit code. The
// command gets none of the caller's settings for PostgreSQL and AWS.
func postgres(ctx context.Context, args []string) int {
	environment.Isolate()
	if os.Getenv(urlVariable) != "" {
		return exitCode(spawn(ctx, args, nil))
	}
	s, err := server.Start(ctx, server.Options{})
	if err != nil {
		fmt.Fprintln(os.Stderr, "devstack:", err)
		return 1
	}
	defer s.Stop()
	return exitCode(spawn(ctx, args, []string{urlVariable + "=" + s.URL(), server.BinVariable + "=" + s.Bin()}))
}

// spawn runs the command in a new process group. When ctx ends, the group gets
// a SIGINT.
func spawn(ctx context.Context, args, env []string) error {
	cmd := exec.Command(args[0], args[1:]...)
	cmd.Env = append(os.Environ(), env...)
	cmd.Stdout, cmd.Stderr = os.Stdout, os.Stderr
	return process.Run(ctx, cmd, grace)
}

func exitCode(err error) int {
	var exit *exec.ExitError
	switch {
	case err == nil:
		return 0
	case errors.Is(err, context.Canceled):
		return exitInterrupted
	case errors.As(err, &exit):
		if status, ok := exit.Sys().(syscall.WaitStatus); ok && status.Signaled() {
			return 128 + int(status.Signal())
		}
		return exit.ExitCode()
	}
	fmt.Fprintln(os.Stderr, "devstack:", err)
	return 1
}
