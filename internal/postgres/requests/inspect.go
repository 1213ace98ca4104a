package requests

import (
	"context"
	"fmt"
	"regexp"
	"time"

	"github.com/jackc/pgx/v5"

	"sumepoller/internal/operator"
	"sumepoller/internal/poller"
	"sumepoller/internal/postgres/statement"
)

var (
	overviewSQL = statement.Read(files, "inspect_overview")
	statesSQL   = statement.Read(files, "inspect_states")
)

// Bounds that keep an inspect short on a table of any size.
const (
	maxPending = 1_000_000
	maxCounted = 500_000
	maxStates  = 100
)

// Inspect reads everything in one snapshot.
func (t *Table) Inspect(ctx context.Context, q operator.Inspect, perDay int) (operator.Inspection, error) {
	limit := q.Limit
	if limit == 0 {
		limit = operator.DefaultInspectLimit
	}
	limit = min(limit, operator.MaxInspectRows)
	seen := operator.Inspection{Mode: operator.ModeInspect}
	options := pgx.TxOptions{IsoLevel: pgx.RepeatableRead, AccessMode: pgx.ReadOnly}
	err := t.inTx(ctx, options, func(tx pgx.Tx) error {
		if err := overview(ctx, tx, &seen); err != nil {
			return err
		}
		for _, list := range []func(context.Context, pgx.Tx, *operator.Inspection, int) error{listDue, listLongRunning, listFailing, listSubmissions} {
			if err := list(ctx, tx, &seen, limit); err != nil {
				return err
			}
		}
		if len(q.JobIDs) == 0 {
			return nil
		}
		return showJobs(ctx, tx, &seen, q.JobIDs)
	})
	if err != nil {
		return operator.Inspection{}, wrap("inspect", "inspect.job_ids", err)
	}
	if perDay > 0 {
		left := max(perDay-seen.ReadsToday, 0)
		seen.ReadsLeft = &left
	}
	return seen, nil
}

// overview fills in the counts.
func overview(ctx context.Context, tx pgx.Tx, seen *operator.Inspection) error {
	var at, oldest int64
	var pending int
	args := statement.Args{
		"max_pending": int64(maxPending), "long_running": operator.LongRunning.Microseconds(), "longest_lease": longestLease,
	}
	err := tx.QueryRow(ctx, overviewSQL, args).
		Scan(&at, &pending, &seen.Due, &oldest, &seen.Leased, &seen.FailingTotal, &seen.LongRunningTotal, &seen.ReadsToday)
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
	return nil
}

// states counts rows by state. For a large table the counts are lower bounds and
// exact is false.
func states(ctx context.Context, tx pgx.Tx) (counts map[string]int, exact bool, err error) {
	rows, err := tx.Query(ctx, statesSQL, statement.Args{"max_rows": int64(maxCounted + 1), "max_states": int64(maxStates)})
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
	return counts, all <= maxCounted && len(counts) < maxStates, nil
}

var address = regexp.MustCompile(`[A-Za-z][A-Za-z0-9+.-]*://\S*`)

// redact prepares last_error for an answer. It should hold no URL. People pass
// answers on, so this is enforced here too.
func redact(lastError string) string {
	const longest = 500
	lastError = address.ReplaceAllString(lastError, "[url]")
	if runes := []rune(lastError); len(runes) > longest {
		lastError = string(runes[:longest]) + "..."
	}
	return lastError
}

func redactPointer(lastError *string) *string {
	if lastError == nil {
		return nil
	}
	redacted := redact(*lastError)
	return &redacted
}
