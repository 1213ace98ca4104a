package main_test

import (
	"net/http"
	"sync/atomic"
	"testing"
	"time"

	"sumepoller/internal/config"
	"sumepoller/internal/poller"
	"sumepoller/internal/sume/sumetest"
)

func TestKill_NextRunFinishesAll(t *testing.T) {
	t.Parallel()
	s := newStage(t)
	s.slow(100*time.Millisecond, 300*time.Millisecond)
	s.due(t, sumetest.Plan{}, ids("job", 400)...)
	brief := []string{"POLL_LEASE=3s", "SUME_REQUEST_TIMEOUT=1s", "POLL_BUDGET=40s"}
	killed := s.sandbox(t, append(brief, config.DatabaseURL+"="+named(t, s.database, "killed"))...)
	answer := killed.begin(t, "")
	s.read(t, 150)
	killed.Kill()
	if got, err := answer(); err == nil {
		t.Fatalf("the killed run answered %s", got.Body())
	}
	until(t, "the killed run's sessions to end", func() bool {
		return s.number(t, `SELECT count(*) FROM pg_stat_activity WHERE application_name = 'killed' AND datname = current_database()`) == 0
	})
	left := 400 - s.number(t, completed)
	if left == 0 || left == 400 {
		t.Fatalf("%d rows left, want the kill during the run", left)
	}
	// The next run waits until the leases of the killed run have expired.
	if got := s.sandbox(t, brief...).tick(t); got.Stopped != poller.StoppedDrained || got.Finished["completed"] != left || got.LostLeases > 0 {
		t.Errorf("summary %+v, want the %d rows that were left", got, left)
	}
	s.ended(t, map[string]int{"completed": 400})
	s.neverTogether(t)
	s.zero(t, charged)
	if reads := s.api.Stats().Reads; reads > 600 {
		t.Errorf("%d reads, want 400 and those that the killed run had not settled", reads)
	}
}

func TestKill_ThreeTimesWithCutConnections(t *testing.T) {
	t.Parallel()
	s := newStage(t)
	s.slow(150*time.Millisecond, 350*time.Millisecond)
	heard := s.announcements(t)
	s.due(t, sumetest.Plan{}, ids("job", 3000)...)
	p := newProxy(t, host(t, s.database))
	environ := []string{
		config.DatabaseURL + "=" + at(t, s.database, p.Listen),
		"POLL_LEASE=4s", "SUME_REQUEST_TIMEOUT=2s", "POLL_BUDGET=25s", "LOG_LEVEL=info",
	}
	for i := range 3 {
		b := s.sandbox(t, environ...)
		answer := b.begin(t, "")
		s.read(t, 300*(i+1))
		b.Kill()
		_, _ = answer()
	}
	stop := p.cutEvery(t, 700*time.Millisecond)
	b, runs := s.sandbox(t, environ...), 0
	for ; runs < 5 && s.number(t, completed) < 3000; runs++ {
		if got := b.invoke(t, ""); got.Failure != nil {
			t.Logf("run %d: %v", runs+1, got.Failure)
		}
	}
	if cuts := stop(); cuts == 0 {
		t.Error("no connection was cut")
	}
	s.ended(t, map[string]int{"completed": 3000})
	s.neverTogether(t)
	if reads := s.api.Stats().Reads; reads >= 4500 {
		t.Errorf("%d reads, want fewer than 4500", reads)
	}
	once(t, heard(), 3000)
}

// The answer to one job kills the process each time. The rows behind it are
// finished by the third tick, and its leases get longer and longer.
func TestKill_ByOneJob(t *testing.T) {
	t.Parallel()
	s := newStage(t)
	var victim atomic.Pointer[sandbox]
	var deaths atomic.Int64
	gate := s.gate(t, func(r *http.Request) {
		if b := victim.Load(); b != nil && r.URL.Path == "/v1/jobs/bomb/status" {
			deaths.Add(1)
			b.Kill()
		}
	})
	s.due(t, sumetest.Plan{}, append([]string{"bomb"}, ids("job", 30)...)...)
	start := func() *sandbox { return s.sandbox(t, "POLL_BUDGET=5s", config.APIBaseURL+"="+gate) }
	const lease = `SELECT round(extract(epoch FROM leased_until - now()))::int FROM video_jobs WHERE job_id = 'bomb'`
	// One tick a minute. The row is in the first two claims, and ends both runs.
	for range 2 {
		b := start()
		victim.Store(b)
		if got, err := b.begin(t, "")(); err == nil {
			t.Fatalf("answer %s, want the process dead", got.Body())
		}
		s.pass(t, time.Minute)
	}
	third := start()
	if got := third.tick(t); got.Finished["completed"] != 30 || got.Stopped != poller.StoppedDrained {
		t.Errorf("third tick: %+v, want the 30 rows behind finished", got)
	}
	// From now on, move the time to 10 s before the end of the row's lease, tick,
	// then move it past the end.
	for _, want := range []int{480, 900, 900} {
		s.pass(t, time.Duration(s.number(t, lease)-10)*time.Second)
		name := "job_" + time.Now().Format("150405.000000000")
		s.due(t, sumetest.Plan{}, name)
		if got := third.tick(t); got.Finished["completed"] != 1 {
			t.Errorf("while the row is leased: %+v", got)
		}
		s.pass(t, 20*time.Second)
		b := start()
		victim.Store(b)
		if got, err := b.begin(t, "")(); err == nil {
			t.Fatalf("answer %s, want the process dead", got.Body())
		}
		if got := s.number(t, lease); got < want-60 || got > want {
			t.Errorf("the row is leased for %d s, want %d", got, want)
		}
	}
	if n := deaths.Load(); n != 5 {
		t.Errorf("%d deaths, want 5", n)
	}
	victim.Store(nil)
	s.pass(t, time.Hour)
	if got := third.tick(t); got.Finished["completed"] != 1 {
		t.Errorf("when it no longer kills: %+v", got)
	}
	s.zero(t, `SELECT count(*) FROM video_jobs WHERE state <> 'completed' OR lost_leases > 0`)
}

// gate serves the API under another address, and calls first before each
// request.
func (s *stage) gate(t *testing.T, first func(*http.Request)) (address string) {
	t.Helper()
	server, err := sumetest.Listen(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		first(r)
		s.api.ServeHTTP(w, r)
	}))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(server.Close)
	return server.URL
}
