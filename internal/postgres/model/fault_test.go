package model

import (
	"context"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"pgregory.net/rapid"

	"sumepoller/internal/poller"
)

func seconds(s float64) time.Duration { return time.Duration(s * float64(time.Second)) }

func list(ctx context.Context, tx pgx.Tx, sql string, args ...any) ([]string, error) {
	rows, err := tx.Query(ctx, sql, args...)
	if err != nil {
		return nil, err
	}
	return pgx.CollectRows(rows, pgx.RowTo[string])
}

// today locks the day's count, so that claims come one after the other.
func today(ctx context.Context, tx pgx.Tx, day *poller.Day) error {
	const open = `INSERT INTO read_budget (day) VALUES ((now() AT TIME ZONE 'utc')::date) ON CONFLICT DO NOTHING`
	if _, err := tx.Exec(ctx, open); err != nil {
		return err
	}
	const lock = `SELECT day::text, reads, extract(epoch FROM (now() AT TIME ZONE 'utc')::time)::float8
		FROM read_budget WHERE day = (now() AT TIME ZONE 'utc')::date FOR UPDATE`
	var elapsed float64
	err := tx.QueryRow(ctx, lock).Scan(&day.Date, &day.Reads, &elapsed)
	day.Elapsed = seconds(elapsed)
	return err
}

// The model asks no more of a store than its rules: a plain one agrees too, so
// that what is found in its broken kin is their fault.
func TestModel_PlainStore(t *testing.T) {
	t.Parallel()
	b := newBench(t, func(b bench) poller.Queue { return &plain{pool: b.pool} })
	checks := 0
	rapid.Check(t, func(rt *rapid.T) {
		if checks++; checks <= 25 {
			b.agree(rt)
		}
	})
}

func TestModel_BrokenStores(t *testing.T) {
	t.Parallel()
	for _, broken := range []fault{
		ignoresLease, takesLeased, waitsForRows, takesBlindly, overwrites, keepsForEver, chargesAgain, silent,
		failsClaim, namesAgain, chargesAll, losesRefusal, shoutsEarly, trustsWrites, keepsPlace, refundsToday,
	} {
		t.Run(string(broken), func(t *testing.T) {
			t.Parallel()
			b := newBench(t, func(b bench) poller.Queue { return &plain{pool: b.pool, fault: broken} })
			found, checks := disagreement(""), 0
			for round := 0; found == "" && round < 5; round++ {
				// Once it is found the histories left are empty.
				rapid.Check(t, func(rt *rapid.T) {
					if found == "" {
						checks++
						found = b.verdict(rt)
					}
				})
			}
			if found == "" {
				t.Fatalf("not found in %d histories", checks)
			}
			t.Logf("found in history %d: %s", checks, found)
		})
	}
}
