package main

import (
	"errors"
	"runtime/debug"
	"strings"
	"testing"

	"go.uber.org/goleak"

	"sumepoller/internal/config"
)

// After a run the sandbox is frozen, so no goroutine may be left.
func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestStart_Errors(t *testing.T) {
	t.Parallel()
	_, err := start(t.Context(), []string{"POLL_BUDGET=58", "DATABASE_URL=postgres://db/jobs"})
	var errs config.Errors
	if !errors.As(err, &errs) || len(errs) != 2 || strings.Count(err.Error(), "\n") != 1 {
		t.Errorf("error %v, want two lines", err)
	}
}

func TestLimitMemory(t *testing.T) {
	t.Setenv("GOMEMLIMIT", "")
	before := debug.SetMemoryLimit(-1)
	defer debug.SetMemoryLimit(before)
	for _, unusable := range []string{"", "many", "-1", "99999999999999999"} {
		limitMemory(unusable)
		if got := debug.SetMemoryLimit(-1); got != before {
			t.Errorf("%q: limit %d, want it as it was", unusable, got)
		}
	}
	for mebibytes, want := range map[string]int64{"144": 120 << 20, "256": 160 << 20, "10240": 160 << 20} {
		limitMemory(mebibytes)
		if got := debug.SetMemoryLimit(-1); got != want {
			t.Errorf("%s MiB: limit %d, want %d", mebibytes, got, want)
		}
	}
}
