package main

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"strconv"
	"syscall"
	"time"
)

const parentEvery = 200 * time.Millisecond

// watchMake calls interrupted when the make that started this program was
// interrupted or has ended. If only make gets a SIGINT, not the terminal's
// whole group, make does not pass it on: it removes its handler and waits for
// its recipe to end.
func watchMake(ctx context.Context, interrupted func()) {
	parent := os.Getppid()
	if name, err := os.ReadFile(fmt.Sprintf("/proc/%d/comm", parent)); err != nil || !bytes.HasSuffix(bytes.TrimSpace(name), []byte("make")) {
		return
	}
	if !catchesInterrupt(parent) {
		return // make ignores the signal
	}
	ticker := time.NewTicker(parentEvery)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
		if os.Getppid() != parent || !catchesInterrupt(parent) {
			interrupted()
			return
		}
	}
}

// catchesInterrupt reports whether a process has a handler for SIGINT.
func catchesInterrupt(pid int) bool {
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		return false
	}
	_, rest, ok := bytes.Cut(status, []byte("\nSigCgt:"))
	if !ok {
		return true // unknown
	}
	line, _, _ := bytes.Cut(rest, []byte("\n"))
	mask, err := strconv.ParseUint(string(bytes.TrimSpace(line)), 16, 64)
	return err != nil || mask&(1<<(uint(syscall.SIGINT)-1)) != 0
}
