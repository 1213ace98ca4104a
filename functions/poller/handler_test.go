package main

import (
	"context"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"sumepoller/internal/poller"
	"sumepoller/internal/sume/sumetest"
)

func TestRun_Due(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.jobs(t, sumetest.Plan{}, "job_1", "job_2")
	w.jobs(t, sumetest.Plan{End: "failed"}, "job_3")
	got := w.run(t)
	if diff := cmp.Diff(map[string]int{"completed": 2, "failed": 1}, got.Finished); diff != "" || got.Stopped != poller.StoppedDrained {
		t.Errorf("stopped %q, finished (-want +got):\n%s", got.Stopped, diff)
	}
	if got.RunID != "req-1" || got.Mode != poller.ModeScheduled {
		t.Errorf("run %q, mode %q", got.RunID, got.Mode)
	}
	if names := w.metrics(t); len(names) != 12 {
		t.Errorf("%d metrics: %v", len(names), names)
	}
	const others = `SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid()`
	w.eventually(t, others, 0)
}

func TestRun_NothingDue(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	got := w.run(t)
	if got.Stopped != poller.StoppedDrained || got.Claimed != 0 || got.OldestDueSeconds != 0 || got.ElapsedSeconds > 20 {
		t.Errorf("summary %+v", got)
	}
	if names := w.metrics(t); len(names) != 12 {
		t.Errorf("%d metrics: %v", len(names), names)
	}
}

// eventually waits until the query's count is as wanted: a backend takes some time
// to end.
func (w *world) eventually(t *testing.T, query string, want int) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	for got := want - 1; got != want; {
		if err := w.db.QueryRow(ctx, query).Scan(&got); err != nil {
			t.Fatalf("last %d, want %d: %v", got, want, err)
		}
	}
}
