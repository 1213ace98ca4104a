package requests_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"sumepoller/internal/operator"
	"sumepoller/internal/pgtest"
	"sumepoller/internal/postgres/requests"
)

// table is a fresh database with the product's work on operator requests.
type table struct {
	*pgtest.DB
	*requests.Table
}

func newTable(t *testing.T) *table {
	t.Helper()
	db := pgtest.New(t)
	return &table{DB: db, Table: requests.New(db.Pool)}
}

// checksum covers every table of the product, every column.
func (db *table) checksum() string {
	db.Helper()
	return pgtest.Value[string](db.DB, `
SELECT md5(coalesce((SELECT string_agg(v::text, '|' ORDER BY v.job_id) FROM video_jobs v), '')
        || coalesce((SELECT string_agg(s::text, '|' ORDER BY s.idempotency_key) FROM video_submissions s), '')
        || coalesce((SELECT string_agg(b::text, '|' ORDER BY b.day) FROM read_budget b), ''))`)
}

func (db *table) backfill(b operator.Backfill, pace time.Duration) operator.Backfilled {
	db.Helper()
	done, err := db.Backfill(db.Context(), b, pace)
	if err != nil {
		db.Fatalf("Backfill: %v", err)
	}
	return done
}

func (db *table) stop(ids ...string) operator.Stopped {
	db.Helper()
	s, err := db.Stop(db.Context(), operator.Stop{JobIDs: ids})
	if err != nil {
		db.Fatalf("Stop: %v", err)
	}
	return s
}

func TestBackfill_LockedRow(t *testing.T) {
	t.Parallel()
	backfill := operator.Backfill{JobIDs: []string{"job_1", "job_2", "job_3"}}
	seed := `INSERT INTO video_jobs (job_id, state) VALUES ('job_1', 'failed'), ('job_2', 'failed')`

	t.Run("for too long", func(t *testing.T) {
		t.Parallel()
		db := newTable(t)
		db.Exec(seed)
		before := db.checksum()
		release := db.Lock("job_2")
		_, err := db.Backfill(t.Context(), backfill, time.Second)
		release()
		if err == nil || !strings.Contains(err.Error(), "nothing was changed, ask again") {
			t.Errorf("error %v, want one that says nothing was changed", err)
		}
		if db.checksum() != before {
			t.Error("a refused backfill changed rows")
		}
		if got, want := db.backfill(backfill, time.Second), (operator.Backfilled{Registered: 1, Reopened: 2}); got != want {
			t.Errorf("asked again: %+v, want %+v", got, want)
		}
	})
	t.Run("briefly", func(t *testing.T) {
		t.Parallel()
		db := newTable(t)
		db.Exec(seed)
		release := db.Lock("job_1")
		done := make(chan operator.Backfilled, 1)
		go func() { done <- db.backfill(backfill, time.Second) }()
		db.AwaitLockWaits(1)
		release()
		if got, want := <-done, (operator.Backfilled{Registered: 1, Reopened: 2}); got != want {
			t.Errorf("did %+v, want %+v", got, want)
		}
	})
	t.Run("due already", func(t *testing.T) {
		t.Parallel()
		db := newTable(t)
		db.Exec(`INSERT INTO video_jobs (job_id, next_poll_at) VALUES ('job_1', now() - interval '1 minute'), ('job_2', now() + interval '1 hour')`)
		defer db.Lock("job_1")()
		if got, want := db.backfill(backfill, time.Second), (operator.Backfilled{Registered: 1, Reopened: 1}); got != want {
			t.Errorf("did %+v, want %+v", got, want)
		}
	})
}

func TestBackfill_TooMany(t *testing.T) {
	t.Parallel()
	db := newTable(t)
	db.Exec(`INSERT INTO video_jobs (job_id, state) SELECT 'job_' || i, 'failed' FROM generate_series(1, 250001) i`)
	_, err := db.Backfill(t.Context(), operator.Backfill{States: []string{"failed"}}, time.Second)
	var refused operator.InvalidRequest
	if !errors.As(err, &refused) || !strings.HasPrefix(string(refused), "backfill.limit: ") {
		t.Errorf("error %v, want one that asks for a limit", err)
	}
	many := make([]string, 250_001)
	for i := range many {
		many[i] = fmt.Sprintf("new_%d", i)
	}
	_, err = db.Backfill(t.Context(), operator.Backfill{JobIDs: many, DryRun: true}, time.Second)
	if !errors.As(err, &refused) || !strings.HasPrefix(string(refused), "backfill.job_ids: 250001 ids") {
		t.Errorf("error %v, want one that asks to split the ids", err)
	}
	if n := pgtest.Value[int](db.DB, `SELECT count(*) FROM video_jobs WHERE state <> 'failed'`); n != 0 {
		t.Errorf("%d rows were changed", n)
	}
}
