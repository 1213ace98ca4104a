package requests

import (
	"context"
	"fmt"
	"regexp"
	"time"

	"github.com/jackc/pgx/v5"

	"sumepoller/internal/operator"
	"sumepoller/internal/poller"
)

// Bounds that keep an inspect short on a table of any size.
const (
	maxPendingSeen = 1_000_000
	maxRowsCounted = 500_000
	maxStates      = 100
	stuckAfter     = 10 * time.Minute
)

// overview counts what is followed, over the due index. $2 is operator.LongRunning.
var overview = `
SELECT (extract(epoch FROM statement_timestamp()) * 1000000)::bigint, c.pending, c.due,
       CASE WHEN c.oldest IS NULL THEN 0 ELSE ` + elapsedSince("c.oldest") + ` END,
       c.leased, c.failing, c.long_running
  FROM (SELECT count(*) AS pending,
               count(*) FILTER (WHERE p.due AND NOT p.leased) AS due,
               min(p.next_poll_at) FILTER (WHERE p.due AND NOT p.leased) AS oldest,
               count(*) FILTER (WHERE p.leased) AS leased,
               count(*) FILTER (WHERE p.failing_since IS NOT NULL) AS failing,
               count(*) FILTER (WHERE p.created_at <= statement_timestamp() - $2::bigint * interval '1 microsecond') AS long_running
          FROM (SELECT v.next_poll_at, v.failing_since, v.created_at,
                       v.next_poll_at <= statement_timestamp() AS due, ` + leasedNow + ` AS leased
                  FROM video_jobs v
                 WHERE v.state = 'pending'
                 LIMIT $1::bigint) p) c`

// countStates counts the first rows of the table by state. No index knows the
// finished rows' states, so that the whole of a large table would be read.
const countStates = `
SELECT p.state, count(*)
  FROM (SELECT coalesce(v.state, '') AS state FROM video_jobs v LIMIT $1::bigint) p
 GROUP BY p.state
 ORDER BY count(*) DESC, p.state
 LIMIT $2::bigint`

// readsToday is what all runs together took from the UTC day's allowance.
const readsToday = `
SELECT coalesce((SELECT b.reads FROM read_budget b
                  WHERE b.day = (statement_timestamp() AT TIME ZONE 'UTC')::date), 0)`

// Inspect looks, in one snapshot that writes nothing.
func (h *Table) Inspect(ctx context.Context, q operator.Inspect, perDay int) (operator.Inspection, error) {
	limit := q.Limit
	if limit == 0 {
		limit = operator.DefaultInspectLimit
	}
	limit = min(limit, operator.MaxInspectRows)
	seen := operator.Inspection{Mode: operator.ModeInspect}
	options := pgx.TxOptions{IsoLevel: pgx.RepeatableRead, AccessMode: pgx.ReadOnly}
	err := h.inTx(ctx, options, func(tx pgx.Tx) error {
		if err := look(ctx, tx, &seen); err != nil {
			return err
		}
		if err := lookAtTrouble(ctx, tx, &seen, limit); err != nil {
			return err
		}
		if len(q.JobIDs) == 0 {
			return nil
		}
		return lookAtJobs(ctx, tx, &seen, q.JobIDs)
	})
	if err != nil {
		return operator.Inspection{}, attempted("inspect", "inspect.job_ids", err)
	}
	if perDay > 0 {
		left := max(perDay-seen.ReadsToday, 0)
		seen.ReadsLeft = &left
	}
	return seen, nil
}

// look fills in the figures.
func look(ctx context.Context, tx pgx.Tx, seen *operator.Inspection) error {
	var at, oldest int64
	var pending int
	err := tx.QueryRow(ctx, overview, int64(maxPendingSeen), operator.LongRunning.Microseconds()).
		Scan(&at, &pending, &seen.Due, &oldest, &seen.Leased, &seen.FailingTotal, &seen.LongRunningTotal)
	if err != nil {
		return fmt.Errorf("count pending jobs: %w", err)
	}
	seen.At = time.UnixMicro(at).UTC()
	seen.OldestDueSeconds = (time.Duration(oldest) * time.Microsecond).Seconds()
	if seen.States, seen.StatesExact, err = states(ctx, tx); err != nil {
		return err
	}
	if pending > 0 {
		seen.States[poller.StatePending] = max(pending, seen.States[poller.StatePending])
	}
	if err := tx.QueryRow(ctx, readsToday).Scan(&seen.ReadsToday); err != nil {
		return fmt.Errorf("read the day's count: %w", err)
	}
	return nil
}

// states counts rows by state. Where the table is large the counts are lower
// bounds and exact is false.
func states(ctx context.Context, tx pgx.Tx) (counts map[string]int, exact bool, err error) {
	rows, err := tx.Query(ctx, countStates, int64(maxRowsCounted+1), int64(maxStates))
	if err != nil {
		return nil, false, fmt.Errorf("count states: %w", err)
	}
	counts = map[string]int{}
	var state string
	var count, all int
	_, err = pgx.ForEachRow(rows, []any{&state, &count}, func() error {
		counts[state] = count
		all += count
		return nil
	})
	if err != nil {
		return nil, false, fmt.Errorf("count states: %w", err)
	}
	return counts, all <= maxRowsCounted && len(counts) < maxStates, nil
}

// address matches a URL. last_error holds none by rule; an answer of an
// inspect gets about, so the rule is kept here too.
var address = regexp.MustCompile(`[A-Za-z][A-Za-z0-9+.-]*://\S*`)

// tell fits an error kept in the table to be shown.
func tell(kept string) string {
	const longest = 500
	kept = address.ReplaceAllString(kept, "[url]")
	if runes := []rune(kept); len(runes) > longest {
		kept = string(runes[:longest]) + "..."
	}
	return kept
}

func tellPointer(kept *string) *string {
	if kept == nil {
		return nil
	}
	told := tell(*kept)
	return &told
}
