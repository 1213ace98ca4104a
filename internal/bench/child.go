package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"

	"sumepoller/internal/bench/load"
	"sumepoller/internal/bench/simulation"
)

// Roles that this program plays in child processes. The input is JSON on
// standard input, the result is JSON on standard output.
const (
	roleLoad = "load" // reads jobs
	roleDays = "days" // runs days in simulated time
)

func play(ctx context.Context, role string) error {
	in := json.NewDecoder(os.Stdin)
	if role == roleDays {
		var days []simulation.Day
		if err := in.Decode(&days); err != nil {
			return err
		}
		simulation.Main(days, os.Stdout) // ends the process
	}
	var s load.Spec
	if err := in.Decode(&s); err != nil {
		return err
	}
	r, err := load.Run(ctx, s)
	if err != nil {
		return err
	}
	return json.NewEncoder(os.Stdout).Encode(r)
}

// command returns the command for a role. Ctrl-C ends it.
func command(ctx context.Context, role string, input any) (*exec.Cmd, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	in, err := json.Marshal(input)
	if err != nil {
		return nil, err
	}
	cmd := exec.CommandContext(ctx, self, role)
	cmd.Stdin, cmd.Stderr = bytes.NewReader(in), os.Stderr
	return cmd, nil
}

// run plays a role in a child process.
func run[T any](ctx context.Context, role string, input any) (result T, err error) {
	cmd, err := command(ctx, role, input)
	if err != nil {
		return result, err
	}
	out, err := cmd.Output()
	if err != nil {
		return result, fmt.Errorf("%s: %w", role, err)
	}
	// A test program's PASS follows the result.
	return result, json.NewDecoder(bytes.NewReader(out)).Decode(&result)
}
