package jobs_test

import (
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"sumepoller/internal/pgtest"
	"sumepoller/internal/poller"
	"sumepoller/internal/postgres/jobs"
)

// pass claims everything that is due by 64 and reschedules it to be due again
// at once, behind all others. It returns the blocks that the claims touched, a
// row.
func pass(db *pgtest.DB, s *jobs.Store, pool *pgxpool.Pool, rows int) float64 {
	db.Helper()
	blocks, got := 0, 0
	for got < rows {
		r := uncounted(min(64, rows-got))
		var jobs []poller.Job
		blocks += db.Blocks(pool, func() { jobs = claim(db, s, r).Jobs })
		if len(jobs) == 0 {
			db.Fatalf("nothing due after %d of %d rows", got, rows)
		}
		batch := make([]poller.Settlement, 0, len(jobs))
		for _, j := range jobs {
			batch = append(batch, reschedule(j.ID, r.Lease, 0))
		}
		settle(db, s, batch...)
		got += len(jobs)
	}
	return float64(blocks) / float64(got)
}

// A session that holds a snapshot keeps dead index entries from being removed.
// Claims must not walk them each time.
func TestCost_HeldSnapshot(t *testing.T) {
	t.Parallel()
	db := pgtest.New(t)
	const rows = 2000
	db.InsertDue(rows)
	tx, err := db.Connect().BeginTx(t.Context(), pgx.TxOptions{IsoLevel: pgx.RepeatableRead})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := tx.Exec(t.Context(), `SELECT count(*) FROM video_jobs`); err != nil {
		t.Fatal(err)
	}
	pool := db.OneConnection()
	s := jobs.New(pool)
	first := pass(db, s, pool, rows)
	var last float64
	for range 6 {
		last = pass(db, s, pool, rows)
	}
	t.Logf("blocks a row: %.1f in the first pass, %.1f in the seventh", first, last)
	if last > 45 {
		t.Errorf("a claim touches %.1f blocks a row after seven passes, %.1f in the first; want at most 45", last, first)
	}
}

// A due time does not identify a row: many rows can have the same one.
func TestClaim_EqualDueTimes(t *testing.T) {
	t.Parallel()
	db := pgtest.New(t)
	const rows = 20_000
	db.Exec(`INSERT INTO video_jobs (job_id, next_poll_at)
	         SELECT 'job_' || g, now() - interval '1 minute' FROM generate_series(1, $1::integer) AS g`, rows)
	s := jobs.New(db.Pool)
	seen := map[string]bool{}
	for {
		r := uncounted(192)
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
			batch = append(batch, finish(j.ID, r.Lease))
		}
		settle(t, s, batch...)
	}
	if len(seen) != rows {
		t.Errorf("%d rows claimed, want %d", len(seen), rows)
	}
}
