package main_test

import (
	"context"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/jackc/pgx/v5"

	"sumepoller/internal/sume/sumetest"
)

// due adds rows that are due, in the order of their names, and jobs that the
// API knows with this plan.
func (s *stage) due(t *testing.T, plan sumetest.Plan, names ...string) {
	t.Helper()
	for _, name := range names {
		s.api.AddJob(name, plan)
	}
	s.exec(t, `
INSERT INTO video_jobs (job_id, next_poll_at)
SELECT id, now() - interval '1 minute' + n * interval '1 millisecond'
FROM unnest($1::text[]) WITH ORDINALITY AS given (id, n)`, names)
}

func (s *stage) exec(t *testing.T, sql string, args ...any) {
	t.Helper()
	if _, err := s.db.Exec(t.Context(), sql, args...); err != nil {
		t.Fatal(err)
	}
}

// number returns what a query counts.
func (s *stage) number(t *testing.T, sql string, args ...any) (n int) {
	t.Helper()
	if err := s.db.QueryRow(t.Context(), sql, args...).Scan(&n); err != nil {
		t.Fatal(err)
	}
	return n
}

// states counts the rows by state.
func (s *stage) states(t *testing.T) map[string]int {
	t.Helper()
	rows, err := s.db.Query(t.Context(), `SELECT state, count(*)::int FROM video_jobs GROUP BY state`)
	if err != nil {
		t.Fatal(err)
	}
	found := map[string]int{}
	var state string
	var n int
	if _, err := pgx.ForEachRow(rows, []any{&state, &n}, func() error { found[state] = n; return nil }); err != nil {
		t.Fatal(err)
	}
	return found
}

// ended wants exactly these numbers of rows by state.
func (s *stage) ended(t *testing.T, want map[string]int) {
	t.Helper()
	if diff := cmp.Diff(want, s.states(t)); diff != "" {
		t.Errorf("rows by state (-want +got):\n%s", diff)
	}
}

const (
	// held are the rows under a lease that lasts.
	held = `SELECT count(*) FROM video_jobs WHERE state = 'pending' AND leased_until >= now()`
	// charged are the rows on which an error was counted.
	charged = `SELECT count(*) FROM video_jobs WHERE consecutive_errors > 0 OR failing_since IS NOT NULL OR last_error IS NOT NULL`
	// waiting are the rows that the next claim can have.
	waiting = `SELECT count(*) FROM video_jobs WHERE state = 'pending' AND next_poll_at <= now() AND leased_until < now()`
	// completed are the rows that reached the usual end.
	completed = `SELECT count(*) FROM video_jobs WHERE state = 'completed'`
)

// zero wants a query that counts nothing.
func (s *stage) zero(t *testing.T, sql string) {
	t.Helper()
	if n := s.number(t, sql); n != 0 {
		t.Errorf("%d rows, want none: %s", n, sql)
	}
}

// neverTogether wants no two reads of one job at the same time.
func (s *stage) neverTogether(t *testing.T) {
	t.Helper()
	if n := s.api.Stats().Overlapping; n > 0 {
		t.Errorf("%d reads overlap another of the same job", n)
	}
}

// until waits for something that is certain to come.
func until(t *testing.T, what string, holds func() bool) {
	t.Helper()
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	limit := time.After(patience)
	for !holds() {
		select {
		case <-tick.C:
		case <-limit:
			t.Fatalf("waited in vain: %s", what)
		}
	}
}

// read waits until the API has seen n reads.
func (s *stage) read(t *testing.T, n int) {
	t.Helper()
	until(t, "reads", func() bool { return s.api.Stats().Reads >= n })
}

// finished waits until n rows are completed.
func (s *stage) finished(t *testing.T, n int) {
	t.Helper()
	until(t, "completed rows", func() bool { return s.number(t, completed) >= n })
}

// pass moves the table's times into the past: so much time goes by.
func (s *stage) pass(t *testing.T, d time.Duration) {
	t.Helper()
	s.exec(t, `
UPDATE video_jobs SET next_poll_at = next_poll_at - $1::bigint * interval '1 microsecond',
       leased_until = leased_until - $1::bigint * interval '1 microsecond'
WHERE state = 'pending'`, d.Microseconds())
}

// announcements listens; the function it returns tells what was heard since,
// and how often.
func (s *stage) announcements(t *testing.T) (heard func() map[string]int) {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), s.database)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close(context.Background()) })
	if _, err := conn.Exec(t.Context(), `LISTEN video_jobs_finished`); err != nil {
		t.Fatal(err)
	}
	return func() map[string]int {
		s.exec(t, `SELECT pg_notify('video_jobs_finished', 'end')`)
		got := map[string]int{}
		for {
			n, err := conn.WaitForNotification(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			if n.Payload == "end" {
				return got
			}
			got[n.Payload]++
		}
	}
}

// once wants so many announcements, each heard once.
func once(t *testing.T, heard map[string]int, want int) {
	t.Helper()
	for payload, n := range heard {
		if n != 1 {
			t.Errorf("announced %d times: %s", n, payload)
		}
	}
	if len(heard) != want {
		t.Errorf("%d jobs announced, want %d", len(heard), want)
	}
}
