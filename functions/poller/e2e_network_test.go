package main_test

import (
	"testing"
	"time"

	"sumepoller/internal/config"
	"sumepoller/internal/poller"
	"sumepoller/internal/sume/sumetest"
)

func TestConnectionsToTheAPIThatAreCutCostTheirReadsAlone(t *testing.T) {
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
	// A request whose kept connection dies goes out once more by itself, perhaps
	// before the server has noticed.
	for id, job := range s.api.Stats().Jobs {
		if job.Reads > 4 {
			t.Errorf("%s was asked for %d times, want twice at most for each of two reads", id, job.Reads)
		}
	}
}

// The server goes silent in the middle of a statement and stays so: nothing of
// it may wait for ever.
func TestDatabaseThatFallsSilentFailsTheTickBeforeItsLimit(t *testing.T) {
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
		t.Errorf("%s: the summary tells of %d finished, the table of %d", line, sum.Finished["completed"], done)
	}
}
