package main_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"sumepoller/internal/devstack/process"
)

// modest checks that the sandbox's process used at most 200 MiB of resident
// memory. It is known by the database in its environment, which no other
// sandbox of the same test may have.
func (s *stage) modest(t *testing.T) {
	t.Helper()
	emulators, err := process.Children(os.Getpid())
	if err != nil {
		t.Fatal(err)
	}
	peaks := map[int]int{}
	for _, emulator := range emulators {
		children, err := process.Children(emulator)
		if err != nil {
			t.Fatal(err)
		}
		for _, pid := range children {
			proc := filepath.Join("/proc", strconv.Itoa(pid))
			environ, err := os.ReadFile(filepath.Join(proc, "environ"))
			if err != nil || !strings.Contains(string(environ), s.database) {
				continue
			}
			peaks[pid] = peak(t, proc)
		}
	}
	if len(peaks) != 1 {
		t.Fatalf("%d processes with this database, want 1", len(peaks))
	}
	for _, mebibytes := range peaks {
		if mebibytes >= 200 {
			t.Errorf("%d MiB were resident, want less than 200", mebibytes)
		}
		t.Logf("resident at most: %d MiB", mebibytes)
	}
}

// peak returns the most that a process had resident, in MiB.
func peak(t *testing.T, proc string) int {
	t.Helper()
	status, err := os.ReadFile(filepath.Join(proc, "status"))
	if err != nil {
		t.Fatal(err)
	}
	_, rest, _ := strings.Cut(string(status), "VmHWM:")
	var kibibytes int
	if _, err := fmt.Sscan(rest, &kibibytes); err != nil {
		t.Fatal(err)
	}
	return kibibytes >> 10
}
