package poller

import (
	"bytes"
	"context"
	"log/slog"
	"strings"
	"testing"
	"time"
)

var testSettings = Settings{
	Budget: 58 * time.Second, Concurrency: 64, Lease: 30 * time.Second, RequestTimeout: 15 * time.Second,
	DefaultInterval: 15 * time.Second, MinInterval: time.Second, MaxInterval: time.Hour, BackoffMax: 15 * time.Minute,
	ReadsPerDay: 1000,
}

// newTestRun returns a run at noon with one lease of so many rows.
func newTestRun(t *testing.T, rows int) (*run, *lease, *bytes.Buffer) {
	t.Helper()
	log := &bytes.Buffer{}
	p := New(testSettings, slog.New(slog.NewJSONHandler(log, &slog.HandlerOptions{Level: slog.LevelDebug})))
	r := p.newRun(context.Background(), nil, nil, noon, NewSummary("run_1", ModeScheduled))
	t.Cleanup(r.cancel)
	r.seeker.dueAt = noon.Add(time.Hour)
	r.quota.update(noon, Day{Reads: 10})
	l := r.leases.add(noon.Add(30 * time.Second))
	r.leases.claimed(l.id, "2026-11-02", rows)
	return r, l, log
}

func TestRun_Act(t *testing.T) {
	idle := func(r *run) { r.seeker.lookBy = noon.Add(time.Hour); r.seeker.overdue = true }
	for name, c := range map[string]struct {
		change  func(*run)
		after   time.Duration
		wake    time.Duration
		stopped string
		cut     bool // reads are cancelled
	}{
		"nothing to do":       {idle, 0, 58 * time.Second, "", false},
		"the last moment":     {idle, 58*time.Second - 1, 1, "", false},
		"the budget is over":  {idle, 58 * time.Second, time.Hour, StoppedBudget, false},
		"due soon":            {func(r *run) { idle(r); r.seeker.dueAt = noon.Add(time.Second) }, 0, time.Second, "", false},
		"reads may last":      {func(r *run) { idle(r); r.minute.begin(noon); r.deadlines.reads = noon.Add(70 * time.Second) }, 60 * time.Second, 10 * time.Second, StoppedBudget, false},
		"reads end":           {func(r *run) { idle(r); r.minute.begin(noon); r.deadlines.reads = noon.Add(70 * time.Second) }, 70 * time.Second, time.Hour, StoppedBudget, true},
		"no read to be ended": {func(r *run) { idle(r); r.deadlines.reads = noon.Add(70 * time.Second) }, 60 * time.Second, time.Hour, StoppedBudget, false},
		"no end of reads":     {func(r *run) { idle(r); r.minute.begin(noon) }, 60 * time.Second, time.Hour, StoppedBudget, false},
		"stopped":             {func(r *run) { r.stop(StoppedDrained) }, 0, time.Hour, StoppedDrained, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r, _, _ := newTestRun(t, 1)
			c.change(r)
			wake := r.act(noon.Add(c.after))
			if wake != c.wake || r.sum.Stopped != c.stopped || (r.readCtx.Err() != nil) != c.cut {
				t.Errorf("wakes in %v, stopped %q, reads %v; want %v, %q", wake, r.sum.Stopped, r.readCtx.Err(), c.wake, c.stopped)
			}
		})
	}
}

func TestRun_Idle(t *testing.T) {
	for name, change := range map[string]func(*run){
		"a read":        func(r *run) { r.minute.begin(noon) },
		"a claim":       func(r *run) { r.seeker.busy = true },
		"a settlement":  func(r *run) { r.writer.settle(noon, Settlement{}) },
		"a suspect":     func(r *run) { r.guard.suspects = []read{{}} },
		"nothing: idle": func(*run) {},
	} {
		r, _, _ := newTestRun(t, 1)
		change(r)
		if got, want := r.idle(), strings.HasSuffix(name, "idle"); got != want {
			t.Errorf("%s: got %v, want %v", name, got, want)
		}
	}
}

func TestRun_OperatorEndsPause(t *testing.T) {
	for mode, blocked := range map[string]bool{ModeScheduled: true, "backfill": false} {
		p := New(testSettings, slog.New(slog.DiscardHandler))
		p.minute.refused(noon, time.Hour, nil)
		sum := NewSummary("run_1", mode)
		sum.Stopped = StoppedDrained
		r := p.newRun(t.Context(), nil, nil, noon, sum)
		r.cancel()
		if p.minute.blockedUntil.IsZero() == blocked || r.sum.Stopped != "" {
			t.Errorf("%s: blocked until %v, stopped %q", mode, p.minute.blockedUntil, r.sum.Stopped)
		}
	}
}

func TestWaker(t *testing.T) {
	w := waker{now: noon, wake: time.Hour}
	for _, at := range []time.Time{{}, noon, noon.Add(-1), noon.Add(2 * time.Hour)} {
		w.at(at)
	}
	if w.wake != time.Hour {
		t.Errorf("wakes in %v, want an hour", w.wake)
	}
	w.at(noon.Add(1))
	if w.wake != 1 {
		t.Errorf("wakes in %v, want the next moment", w.wake)
	}
}
