package main_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
)

// entry is a row after a run.
type entry struct {
	State   string
	Status  string
	Errors  int
	Error   string
	Failing bool
	Held    bool
	// Delay is the time from the last settled read to the next one; from the
	// first error, if there is one.
	Delay time.Duration
}

// entries returns all rows by their ids.
func (s *stage) entries(t *testing.T) map[string]entry {
	t.Helper()
	rows, err := s.db.Query(t.Context(), `
SELECT job_id, state, coalesce(sume_status, ''), consecutive_errors, coalesce(last_error, ''), failing_since IS NOT NULL,
       leased_until >= now(),
       coalesce((extract(epoch FROM next_poll_at - coalesce(failing_since, last_polled_at)) * 1000000)::bigint, 0)
FROM video_jobs`)
	if err != nil {
		t.Fatal(err)
	}
	found := map[string]entry{}
	var id string
	var e entry
	var delay int64
	_, err = pgx.ForEachRow(rows, []any{&id, &e.State, &e.Status, &e.Errors, &e.Error, &e.Failing, &e.Held, &delay}, func() error {
		e.Delay = time.Duration(delay) * time.Microsecond
		found[id] = e
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return found
}

// within reports whether the delay is at least least, and longer by at most this
// share of it.
func (e entry) within(least time.Duration, share float64) bool {
	return e.Delay >= least && e.Delay <= least+time.Duration(share*float64(least))+time.Millisecond
}

// spare checks that no row is charged and none is leased.
func (s *stage) spare(t *testing.T) {
	t.Helper()
	s.zero(t, charged)
	s.zero(t, held)
}

// soon makes all pending rows due.
func (s *stage) soon(t *testing.T) {
	t.Helper()
	s.exec(t, `UPDATE video_jobs SET next_poll_at = now() - interval '1 second' WHERE state = 'pending'`)
}

// shift sets the database's clock to a time of its UTC day, so that a test of
// the daily quota is the same at any hour. It affects every session that begins
// later.
func (s *stage) shift(t *testing.T, clock string) {
	t.Helper()
	const shifted = `
CREATE FUNCTION clock.%s() RETURNS timestamptz LANGUAGE sql STABLE
RETURN pg_catalog.%[1]s() + interval '%d microseconds'`
	now := time.Now().UTC()
	at, err := time.Parse(time.TimeOnly, clock)
	if err != nil {
		t.Fatal(err)
	}
	offset := time.Date(now.Year(), now.Month(), now.Day(), at.Hour(), at.Minute(), at.Second(), 0, time.UTC).Sub(now)
	s.exec(t, `CREATE SCHEMA clock`)
	for _, function := range []string{"now", "clock_timestamp", "statement_timestamp"} {
		s.exec(t, fmt.Sprintf(shifted, function, offset.Microseconds()))
	}
	s.exec(t, `DO $$ BEGIN
	EXECUTE format('ALTER DATABASE %I SET search_path = clock, pg_catalog, public', current_database());
END $$`)
	s.db.Reset()
}
