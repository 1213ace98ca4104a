package main_test

import (
	"context"
	"fmt"
	"os"
	"strings"
	"syscall"
	"testing"

	"sumepoller/internal/devstack/process"
)

const setChildSubreaper = 36 // PR_SET_CHILD_SUBREAPER

// adoptOrphans makes orphaned processes children of this one.
func adoptOrphans(t *testing.T) {
	t.Helper()
	if _, _, errno := syscall.RawSyscall(syscall.SYS_PRCTL, setChildSubreaper, 1, 0); errno != 0 {
		t.Fatalf("adopt orphans: %v", errno)
	}
}

// awaitOrphans reaps the orphans that end and returns the command lines of
// those that still run when ctx ends.
func awaitOrphans(ctx context.Context) []string {
	for {
		children, err := process.Children(os.Getpid())
		if err != nil {
			return []string{err.Error()}
		}
		if len(children) == 0 {
			return nil
		}
		var running []string
		for _, pid := range children {
			var status syscall.WaitStatus
			if _, err := syscall.Wait4(pid, &status, syscall.WNOHANG, nil); err == nil && !status.Exited() && !status.Signaled() {
				line, _ := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", pid))
				running = append(running, strings.ReplaceAll(string(line), "\x00", " "))
			}
		}
		if ctx.Err() != nil {
			return running
		}
	}
}
