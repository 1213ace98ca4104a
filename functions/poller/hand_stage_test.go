package main_test

import (
	"context"
	"encoding/json"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"

	"sumepoller/internal/devstack"
	"sumepoller/internal/operator"
	"sumepoller/internal/poller"
)

// ask invokes with a payload and wants any answer.
func (b *sandbox) ask(t *testing.T, payload string) devstack.Result {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	got, err := b.Invoke(ctx, []byte(payload))
	if err != nil {
		t.Fatalf("%v\n%s", err, b.Log())
	}
	b.discreet(t, string(got.Body()))
	return got
}

// askFor invokes and decodes the answer, which must be no error.
func askFor[T any](t *testing.T, b *sandbox, payload string) (answer T) {
	t.Helper()
	got := b.ask(t, payload)
	if got.Failure != nil {
		t.Fatalf("%.200s failed: %v", payload, got.Failure)
	}
	if err := json.Unmarshal(got.Payload, &answer); err != nil {
		t.Fatalf("%v in %s", err, got.Payload)
	}
	return answer
}

// ran invokes and returns the summary of the run.
func (b *sandbox) ran(t *testing.T, payload string) poller.Summary {
	t.Helper()
	return askFor[poller.Summary](t, b, payload)
}

// backfill invokes and wants these counts of rows added and changed.
func (b *sandbox) backfill(t *testing.T, payload string, registered, reopened int) poller.Summary {
	t.Helper()
	got := b.ran(t, payload)
	if got.Mode != operator.ModeBackfill || got.Registered != registered || got.Reopened != reopened {
		t.Errorf("%.200s: mode %s, %d registered, %d reopened; want %d and %d",
			payload, got.Mode, got.Registered, got.Reopened, registered, reopened)
	}
	return got
}

// askAsync invokes in the background. answer waits for the result.
func (b *sandbox) askAsync(t *testing.T, payload string) (answer func() (devstack.Result, error)) {
	t.Helper()
	var got devstack.Result
	var err error
	done := make(chan struct{})
	go func() {
		defer close(done)
		got, err = b.Invoke(t.Context(), []byte(payload))
	}()
	return func() (devstack.Result, error) {
		<-done
		b.discreet(t, string(got.Body()))
		return got, err
	}
}

// list returns the names as a JSON array.
func list(t *testing.T, names []string) string {
	t.Helper()
	data, err := json.Marshal(names)
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

// checksum returns a checksum of all rows of all tables.
func (s *stage) checksum(t *testing.T) string {
	t.Helper()
	tables := s.column(t, `
SELECT quote_ident(schemaname) || '.' || quote_ident(tablename) FROM pg_tables
 WHERE schemaname NOT IN ('pg_catalog', 'information_schema') ORDER BY 1`)
	if len(tables) < 4 {
		t.Fatalf("tables %q, want all four", tables)
	}
	var sums strings.Builder
	for _, table := range tables {
		for _, sum := range s.column(t, `SELECT md5(coalesce(string_agg(v::text, ';' ORDER BY v::text), '')) FROM `+table+` v`) {
			sums.WriteString(table + " " + sum + "\n")
		}
	}
	return sums.String()
}

// column returns the rows of a query with one column.
func (s *stage) column(t *testing.T, sql string, args ...any) []string {
	t.Helper()
	rows, err := s.db.Query(t.Context(), sql, args...)
	if err != nil {
		t.Fatal(err)
	}
	found, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if err != nil {
		t.Fatal(err)
	}
	return found
}

// mixed fills the table with rows of every kind that a backfill can select: pending,
// in back-off, and finished in four states, with and without created_at. For the API
// all of them are finished.
func (s *stage) mixed(t *testing.T) {
	t.Helper()
	s.exec(t, `
INSERT INTO video_jobs (job_id, state, next_poll_at, created_at, finished_at, failing_since, consecutive_errors, last_error, polls, final_status)
SELECT state || '_' || i, CASE state WHEN 'failing' THEN 'pending' ELSE state END,
       now() + interval '3 hours',
       CASE WHEN i > 2 THEN timestamptz '2026-11-01 00:00:00Z' + i * interval '1 hour' END,
       CASE WHEN state NOT IN ('pending', 'failing') THEN now() - interval '1 day' END,
       CASE state WHEN 'failing' THEN now() - interval '2 hours' END,
       CASE state WHEN 'failing' THEN 7 ELSE 0 END,
       CASE state WHEN 'failing' THEN 'http_5xx 503' END,
       5,
       CASE WHEN state NOT IN ('pending', 'failing') THEN jsonb_build_object('sume_status', state) END
  FROM unnest(ARRAY['pending', 'failing', 'failed', 'not_found', 'stopped', 'completed']) AS state, generate_series(1, 10) AS i`)
	for _, id := range s.column(t, `SELECT job_id FROM video_jobs`) {
		s.api.AddJob(id, finishes)
	}
}
