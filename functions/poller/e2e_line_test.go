package main_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"sumepoller/internal/devstack"
	"sumepoller/internal/poller"
	"sumepoller/internal/sume/sumetest"
)

func TestTick_AllOutcomes(t *testing.T) {
	t.Parallel()
	s := newStage(t)
	s.due(t, sumetest.Plan{}, ids("completed", 40)...)
	s.due(t, sumetest.Plan{End: "failed"}, ids("failed", 5)...)
	s.due(t, sumetest.Plan{End: "canceled", Flat: true}, ids("canceled", 5)...)
	s.due(t, sumetest.Plan{End: "expired"}, ids("expired", 2)...)
	s.due(t, sumetest.Plan{Reads: 2, Hint: 1}, ids("waits", 10)...)
	got := s.sandbox(t, "POLL_BUDGET=12s").tick(t)
	want := map[string]int{"completed": 50, "failed": 5, "canceled": 5, "expired": 2}
	if diff := cmp.Diff(want, got.Finished); diff != "" {
		t.Errorf("finished (-want +got):\n%s", diff)
	}
	s.ended(t, want)
	if got.Claimed != 82 || got.Polled != 82 || got.Rescheduled != 20 || got.Stopped != poller.StoppedDrained || got.LostLeases+got.Released+got.DueRemaining > 0 {
		t.Errorf("summary %+v", got)
	}
	if reads := s.api.Stats().Reads; reads != 82 {
		t.Errorf("%d reads, want 82", reads)
	}
	s.neverTogether(t)
	s.zero(t, charged)
}

// Not parallel: the share of each sandbox is measured.
func TestTick_ThreeSandboxesShareRows(t *testing.T) {
	s := newStage(t)
	s.slow(30*time.Millisecond, 0)
	sandboxes := make([]*sandbox, 3)
	for i := range sandboxes {
		sandboxes[i] = s.sandbox(t, "POLL_BUDGET=20s", "LOG_LEVEL=info")
		sandboxes[i].tick(t) // warm
	}
	s.due(t, sumetest.Plan{}, ids("job", 4000)...)
	answers := make([]func() (devstack.Result, error), len(sandboxes))
	for i, b := range sandboxes {
		answers[i] = b.begin(t, "")
	}
	for i, answer := range answers {
		if sum := answered(t, answer); sum.Polled < 600 || sum.LostLeases > 0 {
			t.Errorf("sandbox %d: %d reads of 4000, %d lost leases; want at least 600, and none", i, sum.Polled, sum.LostLeases)
		}
	}
	if reads := s.api.Stats().Reads; reads != 4000 {
		t.Errorf("%d reads, want 4000", reads)
	}
	s.neverTogether(t)
	s.ended(t, map[string]int{"completed": 4000})
}

func TestTick_IdleCost(t *testing.T) {
	t.Parallel()
	s := newStage(t)
	w := newWire(t, host(t, s.database))
	b := s.sandbox(t, "DATABASE_URL="+named(t, at(t, s.database, w.address), "sandbox"))
	s.due(t, sumetest.Plan{}, "job_1")
	s.exec(t, `INSERT INTO video_jobs (job_id, next_poll_at) VALUES ('job_later', now() + interval '1 hour')`)
	b.tick(t)
	if w.statements() == 0 {
		t.Fatal("no statement was seen")
	}
	for range 5 {
		before := w.statements()
		result := b.invoke(t, "")
		if result.Failure != nil {
			t.Fatal(result.Failure)
		}
		if n := w.statements() - before; n == 0 || n > 8 {
			t.Errorf("%d statements, want 1 to 8: %q", n, w.last(n))
		}
		until(t, "connections at the server to end", func() bool {
			return s.number(t, `SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND application_name = 'sandbox'`) == 0
		})
		// The proxy notices a closed connection a moment later.
		until(t, "connections at the proxy to end", func() bool { return w.open() == 0 })
	}
}

func TestTick_DeliveredTwice(t *testing.T) {
	t.Parallel()
	s := newStage(t)
	heard := s.announcements(t)
	s.slow(20*time.Millisecond, 60*time.Millisecond)
	names := ids("job", 300)
	s.due(t, sumetest.Plan{}, names...)
	const requestID = "8e07ff10-0000-4000-8000-000000000011"
	first, second := s.sandbox(t, "POLL_BUDGET=20s"), s.sandbox(t, "POLL_BUDGET=20s")
	one, other := first.begin(t, requestID), second.begin(t, requestID)
	if sum := answered(t, one).Claimed + answered(t, other).Claimed; sum != 300 {
		t.Errorf("%d rows claimed, want 300", sum)
	}
	again := first.invoke(t, requestID)
	if sum := summary(t, string(again.Payload)); sum.Claimed != 0 || sum.Stopped != poller.StoppedDrained {
		t.Errorf("delivered again: %+v", sum)
	}
	s.ended(t, map[string]int{"completed": 300})
	if reads := s.api.Stats().Reads; reads != 300 {
		t.Errorf("%d reads, want 300", reads)
	}
	want := map[string]int{}
	for _, name := range names {
		want[fmt.Sprintf(`{"job_id" : %q, "state" : "completed"}`, name)] = 1
	}
	if diff := cmp.Diff(want, heard()); diff != "" {
		t.Errorf("announcements (-want +got):\n%s", diff)
	}
}
