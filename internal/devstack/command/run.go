package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strconv"
	"time"

	"sumepoller/internal/devstack/environment"
	"sumepoller/internal/devstack/stack"
)

const (
	defaultJobs = 60
	mostJobs    = 20000
	boundBase   = 90 * time.Second // after the preparations
	boundPerJob = 250 * time.Millisecond
	buying      = 15 * time.Second
	life        = 30 * time.Second
)

// run runs the local stack and returns the exit code.
func run(ctx context.Context) int {
	environment.Isolate()
	o, err := options()
	if err != nil {
		fmt.Fprintln(os.Stderr, "make run:", err)
		return 2
	}
	switch err := stack.Run(ctx, o); {
	case err != nil && ctx.Err() != nil:
		fmt.Println("\ninterrupted; everything that was started has ended")
		return exitInterrupted
	case err != nil:
		fmt.Fprintln(os.Stderr, "make run:", err)
		return 1
	}
	fmt.Println("every job reached its end")
	return 0
}

// options reads JOBS, KEEP and DEV_DATABASE_URL.
func options() (stack.Options, error) {
	o := stack.Options{
		Jobs: defaultJobs, Keep: os.Getenv("KEEP") == "1", Server: os.Getenv(urlVariable),
		Buying: buying, Life: life, Out: os.Stdout,
	}
	if text := os.Getenv("JOBS"); text != "" {
		jobs, err := strconv.Atoi(text)
		if err != nil || jobs < 1 || jobs > mostJobs {
			return o, fmt.Errorf("JOBS=%s: want a number from 1 to %d", text, mostJobs)
		}
		o.Jobs = jobs
	}
	if keep := os.Getenv("KEEP"); keep != "" && keep != "0" && keep != "1" {
		return o, errors.New("KEEP: want 1, or nothing")
	}
	o.Bound = boundBase + time.Duration(o.Jobs)*boundPerJob
	return o, nil
}
