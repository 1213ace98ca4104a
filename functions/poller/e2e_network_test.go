package main_test

import (
	"testing"
	"time"

	"sumepoller/internal/config"
	"sumepoller/internal/poller"
	"sumepoller/internal/sume/sumetest"
)

func TestNetwork_APIConnectionsCut(t *testing.T) {
	t.Parallel()
	s := newStage(t)
	s.slow(20*time.Millisecond, 80*time.Millisecond)
	p := newProxy(t, host(t, s.url))
	s.due(t, sumetest.Plan{}, ids("job", 600)...)
	b := s.sandbox(t, config.APIBaseURL+"=http://"+p.Listen, "POLL_CONCURRENCY=8", "POLL_BUDGET=14s")
	stop := p.cutEvery(t, 300*time.Millisecond)
	got := b.tick(t)
	if cuts := stop(); cuts == 0 {
		t.Error("no connection was cut")
	}
	failed := got.Errors[poller.Network]
	if got.Finished["completed"]+failed+got.DueRemaining != 600 || got.Released+got.LostLeases > 0 {
		t.Errorf("summary %+v", got)
	}
	if n := s.number(t, charged); n != failed {
		t.Errorf("%d rows charged, want the %d whose read was cut", n, failed)
	}
	s.zero(t, held)
	s.zero(t, `SELECT count(*) FROM video_jobs WHERE last_error NOT LIKE 'network%' OR consecutive_errors > 1`)
	s.pass(t, time.Minute)
	b.tick(t)
	s.ended(t, map[string]int{"completed": 600})
	// net/http sends a request again if its kept connection was closed, perhaps
	// after the server has seen it.
	for id, job := range s.api.Stats().Jobs {
		if job.Reads > 4 {
			t.Errorf("%d requests for %s, want at most two for each of two reads", job.Reads, id)
		}
	}
}

// The database stops answering in the middle of a statement. The run must fail
// before the function's time limit.
func TestNetwork_DatabaseSilent(t *testing.T) {
	t.Parallel()
	s := newStage(t)
	s.slow(50*time.Millisecond, 150*time.Millisecond)
	s.due(t, sumetest.Plan{}, ids("job", 1500)...)
	p := newProxy(t, host(t, s.database))
	b := s.limited(t, 20*time.Second, config.DatabaseURL+"="+at(t, s.database, p.Listen))
	answer := b.begin(t, "")
	s.finished(t, 100)
	p.silence(t)
	got, err := answer()
	if err != nil || got.Failure == nil || got.TimedOut {
		t.Fatalf("answer %s, error %v; want a failure before the limit", got.Body(), err)
	}
	line, sum := failure(t, got, poller.KindDatabase)
	if done := s.number(t, completed); sum.Finished["completed"] == 0 || sum.Finished["completed"] > done {
		t.Errorf("%s: %d finished in the summary, %d in the table", line, sum.Finished["completed"], done)
	}
}
