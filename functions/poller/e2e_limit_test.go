package main_test

import (
	"strings"
	"testing"
	"time"

	"sumepoller/internal/poller"
	"sumepoller/internal/sume/sumetest"
)

// Not parallel: the limit is measured in real time.
func TestTimeLimit_SlowReads(t *testing.T) {
	s := newStage(t)
	s.slow(3*time.Second, 0)
	b := s.limited(t, 10*time.Second)
	b.tick(t) // warm
	s.due(t, sumetest.Plan{}, ids("job", 500)...)
	result := b.invoke(t, "")
	if result.Failure != nil { // of the emulator, at the limit
		t.Fatalf("failure %v after %v, want an answer before 10 s", result.Failure, result.Took)
	}
	got := summary(t, string(result.Payload))
	if got.Finished["completed"] < 60 || got.Stopped != poller.StoppedBudget {
		t.Errorf("summary %+v, want at least 60 finished", got)
	}
	s.checkReleased(t, 500, got)
}

// The function's time limit is shorter than the time budget. The run must answer
// before it. Not parallel: the limit is measured in real time.
func TestTimeLimit_ShorterThanBudget(t *testing.T) {
	for name, c := range map[string]struct {
		limit, read time.Duration
		rows, least int
	}{
		"5 s, 50 reads of 2 s":          {5 * time.Second, 2 * time.Second, 50, 1},
		"2 s, reads that take too long": {2 * time.Second, 4 * time.Second, 50, 0},
		"2 s, more reads than fit":      {2 * time.Second, 50 * time.Millisecond, 8000, 0},
		"1 s, nothing due":              {time.Second, 0, 0, 0},
	} {
		t.Run(name, func(t *testing.T) {
			s := newStage(t)
			s.slow(c.read, 0)
			s.due(t, sumetest.Plan{}, ids("job", c.rows)...)
			b := s.limited(t, c.limit, "LOG_LEVEL=info")
			result := b.invoke(t, "")
			if result.Failure != nil {
				t.Fatalf("failure %v after %v", result.Failure, result.Took)
			}
			got := summary(t, string(result.Payload))
			if n := got.Finished["completed"]; n < c.least {
				t.Errorf("%d finished, want at least %d", n, c.least)
			}
			s.checkReleased(t, c.rows, got)
			// The line is written before the answer, but through a pipe.
			until(t, "a metrics line", func() bool { return strings.Contains(b.Log(), `"CloudWatchMetrics"`) })
			if n := strings.Count(b.Log(), `"CloudWatchMetrics"`); n != 1 {
				t.Errorf("%d lines of metrics, want one", n)
			}
		})
	}
}

func TestTimeLimit_ReadOutlastsBudget(t *testing.T) {
	t.Parallel()
	s := newStage(t)
	s.slow(1500*time.Millisecond, 0)
	s.due(t, sumetest.Plan{}, ids("job", 200)...)
	got := s.sandbox(t, "POLL_BUDGET=1s").tick(t)
	if got.Stopped != poller.StoppedBudget || got.Finished["completed"] == 0 || got.Released > 0 {
		t.Errorf("summary %+v", got)
	}
	s.checkReleased(t, 200, got)
}

// checkReleased checks that each row is finished, or due at once without a lease
// and with nothing counted.
func (s *stage) checkReleased(t *testing.T, rows int, got poller.Summary) {
	t.Helper()
	done := s.number(t, completed)
	if n := s.number(t, waiting); done != got.Finished["completed"] || done+n != rows {
		t.Errorf("%d rows completed and %d due of %d; summary %+v", done, n, rows, got)
	}
	s.zero(t, held)
	s.zero(t, charged)
	s.zero(t, `SELECT count(*) FROM video_jobs WHERE state = 'pending' AND (polls > 0 OR lost_leases > 0)`)
}
