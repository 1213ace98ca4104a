package postgres_test

import (
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"sumepoller/internal/poller"
	"sumepoller/internal/postgres"
)

// single is a store whose statements all go through one connection.
func (t table) single() (*postgres.Store, *pgxpool.Pool) {
	t.Helper()
	cfg, err := pgxpool.ParseConfig(t.url)
	if err != nil {
		t.Fatal(err)
	}
	cfg.MaxConns = 1
	pool, err := pgxpool.NewWithConfig(t.Context(), cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(pool.Close)
	return postgres.NewStore(pool), pool
}

// blocks counts the blocks of the table and its indexes that do touched through
// the pool's one connection.
func (t table) blocks(pool *pgxpool.Pool, do func()) int {
	t.Helper()
	touched := func() (n int) {
		t.Helper()
		if _, err := pool.Exec(t.Context(), `SELECT pg_stat_force_next_flush()`); err != nil {
			t.Fatal(err)
		}
		err := pool.QueryRow(t.Context(), `SELECT (idx_blks_hit + idx_blks_read + heap_blks_hit + heap_blks_read)::integer
			FROM pg_statio_user_tables WHERE relname = 'video_jobs'`).Scan(&n)
		if err != nil {
			t.Fatal(err)
		}
		return n
	}
	before := touched()
	do()
	return touched() - before
}

// pass claims everything that is due by 64 and reschedules it to be due again
// at once, behind all others. It returns the blocks that the claims touched, a
// row.
func (t table) pass(s *postgres.Store, pool *pgxpool.Pool, rows int) float64 {
	t.Helper()
	blocks, got := 0, 0
	for got < rows {
		r := want(min(64, rows-got))
		var jobs []poller.Job
		blocks += t.blocks(pool, func() { jobs = claim(t, s, r).Jobs })
		if len(jobs) == 0 {
			t.Fatalf("nothing due after %d of %d rows", got, rows)
		}
		batch := make([]poller.Settlement, 0, len(jobs))
		for _, j := range jobs {
			batch = append(batch, later(j.ID, r.Lease, 0))
		}
		settle(t, s, batch...)
		got += len(jobs)
	}
	return float64(blocks) / float64(got)
}

// Field case 17.
func TestClaimsStayCheapWhileASnapshotIsHeldElsewhere(t *testing.T) {
	t.Parallel()
	db := newTable(t)
	const rows = 2000
	db.due(rows)
	tx, err := db.session().BeginTx(t.Context(), pgx.TxOptions{IsoLevel: pgx.RepeatableRead})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := tx.Exec(t.Context(), `SELECT count(*) FROM video_jobs`); err != nil {
		t.Fatal(err)
	}
	s, pool := db.single()
	first := db.pass(s, pool, rows)
	var last float64
	for range 6 {
		last = db.pass(s, pool, rows)
	}
	t.Logf("blocks a row: %.1f in the first pass, %.1f in the seventh", first, last)
	if last > 45 {
		t.Errorf("a claim touches %.1f blocks a row after seven passes, %.1f in the first; want at most 45", last, first)
	}
}

// Field case 30.
func TestManyRowsDueAtOneAndTheSameTimeAreEachClaimedOnceAndCheaply(t *testing.T) {
	t.Parallel()
	db := newTable(t)
	const rows = 20_000
	db.exec(`INSERT INTO video_jobs (job_id, next_poll_at)
	         SELECT 'job_' || g, now() - interval '1 minute' FROM generate_series(1, $1::integer) AS g`, rows)
	s := postgres.NewStore(db.pool)
	seen := map[string]bool{}
	for {
		r := want(192)
		got := claim(t, s, r)
		if len(got.Jobs) == 0 {
			break
		}
		batch := make([]poller.Settlement, 0, len(got.Jobs))
		for _, j := range got.Jobs {
			if seen[j.ID] {
				t.Fatalf("%s was claimed twice", j.ID)
			}
			seen[j.ID] = true
			batch = append(batch, finishing(j.ID, r.Lease))
		}
		settle(t, s, batch...)
	}
	if len(seen) != rows {
		t.Errorf("%d rows claimed, want %d", len(seen), rows)
	}
}
