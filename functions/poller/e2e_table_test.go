package main_test

import (
	"context"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/jackc/pgx/v5"

	"sumepoller/internal/sume/sumetest"
)

// due adds due rows, in the order of the names, and their jobs to the API with
// this plan.
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

// number returns the number that a query selects.
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

// ended checks the number of rows in each state.
func (s *stage) ended(t *testing.T, want map[string]int) {
	t.Helper()
	if diff := cmp.Diff(want, s.states(t)); diff != "" {
		t.Errorf("rows by state (-want +got):\n%s", diff)
	}
}

const (
	// held counts the pending rows under a lease.
	held = `SELECT count(*) FROM video_jobs WHERE state = 'pending' AND leased_until >= now()`
	// charged counts the rows with a read error.
	charged = `SELECT count(*) FROM video_jobs WHERE consecutive_errors > 0 OR failing_since IS NOT NULL OR last_error IS NOT NULL`
	// waiting counts the claimable rows.
	waiting = `SELECT count(*) FROM video_jobs WHERE state = 'pending' AND next_poll_at <= now() AND leased_until < now()`
	// completed counts the completed rows.
	completed = `SELECT count(*) FROM video_jobs WHERE state = 'completed'`
)

// zero checks that a query counts no row.
func (s *stage) zero(t *testing.T, sql string) {
	t.Helper()
	if n := s.number(t, sql); n != 0 {
		t.Errorf("%d rows, want none: %s", n, sql)
	}
}

// neverTogether checks that no job was read twice at the same time.
func (s *stage) neverTogether(t *testing.T) {
	t.Helper()
	if n := s.api.Stats().Overlapping; n > 0 {
		t.Errorf("%d reads during another read of the same job", n)
	}
}

// until waits for something that must happen.
func until(t *testing.T, what string, holds func() bool) {
	t.Helper()
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	limit := time.After(patience)
	for !holds() {
		select {
		case <-tick.C:
		case <-limit:
			t.Fatalf("waited %v for %s", patience, what)
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

// pass moves the table's times into the past, as if this much time had passed.
func (s *stage) pass(t *testing.T, d time.Duration) {
	t.Helper()
	s.exec(t, `
UPDATE video_jobs SET next_poll_at = next_poll_at - $1::bigint * interval '1 microsecond',
       leased_until = leased_until - $1::bigint * interval '1 microsecond'
WHERE state = 'pending'`, d.Microseconds())
}

// announcements listens for completion events. heard returns how often each has
// come since.
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

// once checks the number of completion events, and that each came once.
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
