package requests_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
	"pgregory.net/rapid"

	"sumepoller/internal/operator"
	"sumepoller/internal/pgtest"
	"sumepoller/internal/postgres/requests"
)

// keepRows takes the table as it is, to compare with later.
const keepRows = `
DROP TABLE IF EXISTS kept;
CREATE TABLE kept AS SELECT job_id, state, next_poll_at, leased_until, lease_id, polls, final_status FROM video_jobs`

// violations counts what no backfill may do to the rows kept: remove one, move
// a pending one later or touch its lease, drop a row's history, finish one.
const violations = `
SELECT count(*) FROM kept k LEFT JOIN video_jobs v ON v.job_id = k.job_id
 WHERE v.job_id IS NULL
    OR k.state = 'pending' AND v.next_poll_at > k.next_poll_at
    OR k.state = 'pending' AND (v.leased_until, v.lease_id) IS DISTINCT FROM (k.leased_until, k.lease_id)
    OR (v.polls, v.final_status) IS DISTINCT FROM (k.polls, k.final_status)
    OR v.state NOT IN (k.state, 'pending')`

const movedLater = `
SELECT count(*) FROM kept k JOIN video_jobs v ON v.job_id = k.job_id WHERE v.next_poll_at > k.next_poll_at AND k.state = 'pending'`

// TestBackfill_AnyRequest draws tables and requests. Due times lie minutes
// from where a backfill puts rows, so that the time a step takes decides nothing.
func TestBackfill_AnyRequest(t *testing.T) {
	t.Parallel()
	pool := pgtest.Pool(t, pgtest.URL(t))
	table := requests.New(pool)
	ctx := t.Context()
	rapid.Check(t, func(rt *rapid.T) {
		run := func(sql string, args ...any) {
			if _, err := pool.Exec(ctx, sql, args...); err != nil {
				rt.Fatalf("%s: %v", sql, err)
			}
		}
		do := func(b operator.Backfill, pace time.Duration) operator.Backfilled {
			done, err := table.Backfill(ctx, b, pace)
			if err != nil {
				rt.Fatalf("Backfill: %v", err)
			}
			return done
		}
		drawTable(rt, run)
		b := drawBackfill(rt)
		pace := rapid.SampledFrom([]time.Duration{time.Second, 10 * time.Minute}).Draw(rt, "pace")
		run(keepRows)
		before := number(ctx, rt, pool, `SELECT count(*) FROM video_jobs`)

		dry := b
		dry.DryRun = true
		counted := do(dry, pace)
		if did := do(b, pace); did != counted {
			rt.Fatalf("did %+v, the dry run counted %+v", did, counted)
		}
		if n := number(ctx, rt, pool, violations); n != 0 {
			rt.Fatalf("%d rows came out wrong", n)
		}
		if got := number(ctx, rt, pool, `SELECT count(*) FROM video_jobs`); got != before+counted.Registered {
			rt.Fatalf("%d rows, want %d and %d registered", got, before, counted.Registered)
		}
		run(keepRows)
		// Rows reopened by their state are no longer in it: those behind move up.
		if again := do(b, pace); len(b.States) == 0 && again != (operator.Backfilled{}) {
			rt.Fatalf("asked again it did %+v", again)
		}
		if n := number(ctx, rt, pool, movedLater); n != 0 {
			rt.Fatalf("asked again it moved %d rows later", n)
		}
	})
}

func number(ctx context.Context, rt *rapid.T, pool *pgxpool.Pool, sql string) (n int) {
	if err := pool.QueryRow(ctx, sql).Scan(&n); err != nil {
		rt.Fatalf("%s: %v", sql, err)
	}
	return n
}

func drawTable(rt *rapid.T, run func(string, ...any)) {
	run(`TRUNCATE video_jobs`)
	rows := rapid.IntRange(0, 130).Draw(rt, "rows")
	run(`INSERT INTO video_jobs (job_id, state, next_poll_at, created_at, failing_since, leased_until, lease_id, polls, final_status)
		SELECT 'job_' || i, (ARRAY['pending', 'pending', 'failed', 'completed'])[1 + (i * $2::integer) % 4],
		       (ARRAY[now() - interval '1 minute', now() + interval '5 minutes', now() + interval '65 minutes', 'infinity'])[1 + (i / 3 * $2::integer) % 4],
		       CASE WHEN i % 5 > 0 THEN now() - i * interval '1 hour' END, CASE WHEN i % 3 = 0 THEN now() END,
		       CASE WHEN i % 7 = 0 THEN now() + interval '1 minute' ELSE '-infinity' END, gen_random_uuid(), i, '{}'
		  FROM generate_series(1, $1::integer) i`, rows, rapid.SampledFrom([]int{1, 3, 5, 7}).Draw(rt, "mix"))
}

func drawBackfill(rt *rapid.T) operator.Backfill {
	var b operator.Backfill
	for i := range rapid.IntRange(0, 130).Draw(rt, "ids") {
		b.JobIDs = append(b.JobIDs, fmt.Sprintf("job_%d", 60+i))
	}
	b.States = rapid.SampledFrom([][]string{nil, {"failed"}, {"failed", "completed"}, {"expired"}}).Draw(rt, "states")
	b.Overdue = rapid.Bool().Draw(rt, "overdue")
	b.Limit = rapid.SampledFrom([]int{0, 0, 1, 40, 120}).Draw(rt, "limit")
	if rapid.Bool().Draw(rt, "window") {
		after := time.Now().Add(-50*time.Hour - 30*time.Minute)
		b.CreatedAfter = &after
	}
	return b
}
