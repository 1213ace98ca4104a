package main_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"sumepoller/internal/poller"
	"sumepoller/internal/sume/sumetest"
)

// Rows that are read and released must not stay at the head of the queue.
func TestFairness_OddRowsAtTheHead(t *testing.T) {
	t.Parallel()
	limited := sumetest.Fault{Status: 429, Header: map[string]string{"Retry-After": "1"}}
	for name, c := range map[string]struct {
		forbidden, concurrency int
		limited, unauthorized  bool
		runs                   int
	}{
		"40 of 403, 8 in flight":   {forbidden: 40, concurrency: 8, runs: 8},
		"100 of 403, 64 in flight": {forbidden: 100, concurrency: 64, runs: 6},
		"one of 429":               {limited: true, concurrency: 8, runs: 4},
		"one of 401":               {unauthorized: true, concurrency: 8, runs: 4},
		"all of them":              {forbidden: 100, limited: true, unauthorized: true, concurrency: 64, runs: 12},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newStage(t)
			odd := ids("a_forbidden", c.forbidden)
			if c.limited {
				odd = append(odd, "b_limited")
			}
			if c.unauthorized {
				odd = append(odd, "c_unauthorized")
			}
			slices.Reverse(odd)
			s.due(t, sumetest.Plan{}, slices.Concat(odd, ids("good", 50))...)
			for _, id := range odd {
				switch id[0] {
				case 'a':
					s.api.SetFault(id, sumetest.Fault{Status: 403})
				case 'b':
					s.api.SetFault(id, limited)
				case 'c':
					s.api.SetFault(id, sumetest.Fault{Status: 401})
				}
			}
			b := s.sandbox(t, "POLL_BUDGET=3s", fmt.Sprintf("POLL_CONCURRENCY=%d", c.concurrency))
			runs := 0
			for ; runs < c.runs && s.number(t, completed) < 50; runs++ {
				b.invoke(t, "")
			}
			if n := s.number(t, completed); n != 50 {
				t.Errorf("%d of 50 good rows completed in %d runs", n, runs)
			}
			s.zero(t, `SELECT count(*) FROM video_jobs WHERE job_id = 'b_limited' AND (consecutive_errors > 0 OR polls > 0)`)
			s.zero(t, held)
		})
	}
}

func TestFairness_401ChargedOnceAccepted(t *testing.T) {
	t.Parallel()
	s := newStage(t)
	s.due(t, sumetest.Plan{}, append(ids("good", 5), "z_unauthorized")...)
	s.api.SetFault("z_unauthorized", sumetest.Fault{Status: 401})
	sum := s.sandbox(t, "POLL_BUDGET=3s").tick(t)
	row := s.entries(t)["z_unauthorized"]
	if sum.Errors[poller.Unauthorized] != 1 || row.Errors != 1 || !strings.HasPrefix(row.Error, "unauthorized 401") || !row.within(backoff, 0.25) {
		t.Errorf("summary %s, row %+v; want an error of the row", sum.JSON(), row)
	}
	s.zero(t, `SELECT count(*) FROM video_jobs WHERE polls <> 1`)
}

func TestFairness_SlowAnswersAtTheHead(t *testing.T) {
	t.Parallel()
	s := newStage(t)
	slow := ids("a_slow", 40)
	s.due(t, sumetest.Plan{}, slices.Concat(slow, ids("fast", 3000))...)
	for _, id := range slow {
		s.api.SetFault(id, sumetest.Fault{Delay: 14900 * time.Millisecond})
	}
	b := s.sandbox(t, "POLL_BUDGET=20s")
	answer := b.begin(t, "")
	began := time.Now()
	until(t, "a hundred jobs finished", func() bool { return s.number(t, completed) >= 100 })
	// First one read, then eight more each second, until all slow ones are in
	// flight: six seconds, twice as long on a busy machine.
	if took := time.Since(began); took > 12*time.Second {
		t.Errorf("a hundred jobs are finished after %v, behind 40 answers of 14.9 s", took)
	}
	answered(t, answer)
}

// Rows that are claimed while a 429 arrives are released without a read.
func TestRead_429WhileClaiming(t *testing.T) {
	t.Parallel()
	s := newStage(t)
	s.due(t, sumetest.Plan{End: sumetest.Never, Hint: 3600}, ids("job", 400)...)
	s.slow(10*time.Millisecond, 15*time.Millisecond)
	p := newProxy(t, host(t, s.database))
	const toxic = `{"type": "latency", "stream": "downstream", "attributes": {"latency": 20}}`
	if _, err := p.Toxics.AddToxicJson(strings.NewReader(toxic)); err != nil {
		t.Fatal(err)
	}
	// From the hundredth read on, the limit is used up.
	s.api.SetFault("", sumetest.Fault{From: 100, Status: 429, Header: map[string]string{"Retry-After": "3600"}})
	const concurrency = 16
	b := s.sandbox(t, "POLL_BUDGET=5s", fmt.Sprintf("POLL_CONCURRENCY=%d", concurrency), "SUME_READS_PER_DAY=10000",
		"DATABASE_URL="+at(t, s.database, p.Listen))
	sum := b.tick(t)
	// The reads in flight at the first 429 still arrive.
	if reads := s.api.Stats().Reads; reads > 99+concurrency {
		t.Errorf("%d reads, want at most %d: those before the limit and those in flight", reads, 99+concurrency)
	}
	if sum.Stopped != poller.StoppedRateLimited {
		t.Errorf("summary %s, want rate_limited", sum.JSON())
	}
	s.spare(t)
	if n, reads := s.number(t, `SELECT reads FROM read_budget`), s.api.Stats().Reads; n != reads {
		t.Errorf("read_budget has %d reads, the API saw %d", n, reads)
	}
}

func TestRun_DueRowLockedToTheEnd(t *testing.T) {
	t.Parallel()
	s := newStage(t)
	s.due(t, sumetest.Plan{}, "job_1")
	tx, err := s.db.Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = tx.Rollback(t.Context()) }()
	if _, err := tx.Exec(t.Context(), `SELECT job_id FROM video_jobs FOR UPDATE`); err != nil {
		t.Fatal(err)
	}
	sum := s.sandbox(t, "POLL_BUDGET=3s").tick(t)
	if sum.Stopped != poller.StoppedBudget || sum.DueRemaining != 1 || sum.ElapsedSeconds < 3 {
		t.Errorf("summary %s, want the budget used up with one due", sum.JSON())
	}
}

// A wait that the API asks for continues in the next runs of a warm sandbox. A
// backfill ends it.
func TestBackfill_EndsALongWait(t *testing.T) {
	t.Parallel()
	s := newStage(t)
	s.due(t, sumetest.Plan{}, "job_1")
	s.api.SetFault("", sumetest.Fault{Times: 1, Status: 429, Header: map[string]string{"Retry-After": "18000"}})
	b := s.sandbox(t, "POLL_BUDGET=3s")
	for range 2 {
		if sum := b.tick(t); sum.Stopped != poller.StoppedRateLimited {
			t.Fatalf("summary %s, want rate_limited", sum.JSON())
		}
	}
	if n := s.api.Stats().Reads; n != 1 {
		t.Fatalf("%d reads during the wait, want only the first", n)
	}
	b.ran(t, `{"backfill": {"job_ids": ["job_1"]}}`)
	s.ended(t, map[string]int{"completed": 1})
}
