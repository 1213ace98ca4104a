package postgres_test

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"sumepoller/internal/operator"
	"sumepoller/internal/pgtest"
	"sumepoller/internal/postgres"
)

// hand is a database of its own and the by-hand work on it.
type hand struct {
	*postgres.ByHand
	t    *testing.T
	url  string
	pool *pgxpool.Pool
}

func newHand(t *testing.T) *hand {
	t.Helper()
	address := pgtest.URL(t)
	pool := pgtest.Pool(t, address)
	return &hand{ByHand: postgres.NewByHand(pool), t: t, url: address, pool: pool}
}

func (h *hand) exec(sql string, args ...any) {
	h.t.Helper()
	if _, err := h.pool.Exec(h.t.Context(), sql, args...); err != nil {
		h.t.Fatalf("%s: %v", sql, err)
	}
}

func value[T any](h *hand, sql string, args ...any) T {
	h.t.Helper()
	var v T
	if err := h.pool.QueryRow(h.t.Context(), sql, args...).Scan(&v); err != nil {
		h.t.Fatalf("%s: %v", sql, err)
	}
	return v
}

// with returns the database's URL with one setting more.
func (h *hand) with(key, value string) string {
	h.t.Helper()
	u, err := url.Parse(h.url)
	if err != nil {
		h.t.Fatal(err)
	}
	q := u.Query()
	q.Set(key, value)
	u.RawQuery = q.Encode()
	return u.String()
}

// lines returns what a query finds, each row as one text.
func (h *hand) lines(sql string, args ...any) []string {
	h.t.Helper()
	rows, err := h.pool.Query(h.t.Context(), sql, args...)
	if err != nil {
		h.t.Fatalf("%s: %v", sql, err)
	}
	got, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if err != nil {
		h.t.Fatalf("%s: %v", sql, err)
	}
	return got
}

// checksum covers every table of the product, every column.
func (h *hand) checksum() string {
	h.t.Helper()
	return value[string](h, `
SELECT md5(coalesce((SELECT string_agg(v::text, '|' ORDER BY v.job_id) FROM video_jobs v), '')
        || coalesce((SELECT string_agg(s::text, '|' ORDER BY s.idempotency_key) FROM video_submissions s), '')
        || coalesce((SELECT string_agg(b::text, '|' ORDER BY b.day) FROM read_budget b), ''))`)
}

func (h *hand) backfill(b operator.Backfill, pace time.Duration) operator.Backfilled {
	h.t.Helper()
	done, err := h.Backfill(h.t.Context(), b, pace)
	if err != nil {
		h.t.Fatalf("Backfill: %v", err)
	}
	return done
}

func (h *hand) stop(ids ...string) operator.Stopped {
	h.t.Helper()
	s, err := h.Stop(h.t.Context(), operator.Stop{JobIDs: ids})
	if err != nil {
		h.t.Fatalf("Stop: %v", err)
	}
	return s
}

// names returns n ids that sort as they count.
func names(prefix string, n int) []string {
	ids := make([]string, n)
	for i := range ids {
		ids[i] = fmt.Sprintf("%s%06d", prefix, i+1)
	}
	return ids
}

// hold locks rows as another program does, until the test lets go.
func (h *hand) hold(ids ...string) (release func()) {
	h.t.Helper()
	tx, err := h.pool.Begin(h.t.Context())
	if err != nil {
		h.t.Fatal(err)
	}
	if _, err := tx.Exec(h.t.Context(), `SELECT 1 FROM video_jobs WHERE job_id = ANY ($1) FOR UPDATE`, ids); err != nil {
		h.t.Fatal(err)
	}
	return func() { _ = tx.Rollback(context.WithoutCancel(h.t.Context())) }
}

// waiting returns once so many sessions of the database wait for a lock.
func (h *hand) waiting(sessions int) {
	h.t.Helper()
	for {
		n := value[int](h, `SELECT count(*) FROM pg_stat_activity
			WHERE datname = current_database() AND wait_event_type = 'Lock'`)
		if n >= sessions {
			return
		}
		if err := h.t.Context().Err(); err != nil {
			h.t.Fatal(err)
		}
	}
}

func TestBackfillWhereAnotherProgramHoldsARow(t *testing.T) {
	t.Parallel()
	backfill := operator.Backfill{JobIDs: []string{"job_1", "job_2", "job_3"}}
	seed := `INSERT INTO video_jobs (job_id, state) VALUES ('job_1', 'failed'), ('job_2', 'failed')`

	t.Run("longer than it waits", func(t *testing.T) {
		t.Parallel()
		h := newHand(t)
		h.exec(seed)
		before := h.checksum()
		release := h.hold("job_2")
		_, err := h.Backfill(t.Context(), backfill, time.Second)
		release()
		if err == nil || !strings.Contains(err.Error(), "nothing was changed, ask again") {
			t.Errorf("error %v, want one that says nothing was changed", err)
		}
		if h.checksum() != before {
			t.Error("a refused backfill changed rows")
		}
		if got, want := h.backfill(backfill, time.Second), (operator.Backfilled{Registered: 1, Reopened: 2}); got != want {
			t.Errorf("asked again: %+v, want %+v", got, want)
		}
	})
	t.Run("for a moment", func(t *testing.T) {
		t.Parallel()
		h := newHand(t)
		h.exec(seed)
		release := h.hold("job_1")
		done := make(chan operator.Backfilled, 1)
		go func() { done <- h.backfill(backfill, time.Second) }()
		h.waiting(1)
		release()
		if got, want := <-done, (operator.Backfilled{Registered: 1, Reopened: 2}); got != want {
			t.Errorf("did %+v, want %+v", got, want)
		}
	})
	t.Run("one that is due already", func(t *testing.T) {
		t.Parallel()
		h := newHand(t)
		h.exec(`INSERT INTO video_jobs (job_id, next_poll_at) VALUES ('job_1', now() - interval '1 minute'), ('job_2', now() + interval '1 hour')`)
		defer h.hold("job_1")()
		if got, want := h.backfill(backfill, time.Second), (operator.Backfilled{Registered: 1, Reopened: 1}); got != want {
			t.Errorf("did %+v, want %+v", got, want)
		}
	})
}

func TestBackfillOfMoreThanOneTransactionBears(t *testing.T) {
	t.Parallel()
	h := newHand(t)
	h.exec(`INSERT INTO video_jobs (job_id, state) SELECT 'job_' || i, 'failed' FROM generate_series(1, 250001) i`)
	_, err := h.Backfill(t.Context(), operator.Backfill{States: []string{"failed"}}, time.Second)
	var refused operator.InvalidRequest
	if !errors.As(err, &refused) || !strings.HasPrefix(string(refused), "backfill.limit: ") {
		t.Errorf("error %v, want one that asks for a limit", err)
	}
	many := make([]string, 250_001)
	for i := range many {
		many[i] = fmt.Sprintf("new_%d", i)
	}
	_, err = h.Backfill(t.Context(), operator.Backfill{JobIDs: many, DryRun: true}, time.Second)
	if !errors.As(err, &refused) || !strings.HasPrefix(string(refused), "backfill.job_ids: 250001 ids") {
		t.Errorf("error %v, want one that asks to split the ids", err)
	}
	if n := value[int](h, `SELECT count(*) FROM video_jobs WHERE state <> 'failed'`); n != 0 {
		t.Errorf("%d rows were changed", n)
	}
}
