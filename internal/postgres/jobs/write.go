package jobs

import (
	"context"

	"github.com/jackc/pgx/v5"

	"sumepoller/internal/poller"
	"sumepoller/internal/postgres"
	"sumepoller/internal/postgres/statement"
)

// Values of lock_timeout.
const (
	rowWait  = "300ms" // for a row that another program has locked
	skipWait = "2s"    // where locked rows are skipped: for the locks that triggers and the commit need
	fewRows  = 32      // up to which a batch waits for rowWait only; a larger one is halved until the row is found
)

var outcomeSQL = statement.Read(files, "outcome")

// keys are the rows of a batch, column by column. states holds the state that
// each row will have. refused marks the settlements that follow one that the
// table refused.
type keys struct {
	ids, leases, states []string
	refused             []bool
}

// write runs a statement that locks rows by their keys, and returns each row's
// outcome. A row that is leased, locked by nobody else and still not written is
// tried once more: it may have changed between the statement's snapshot and its
// lock. If it is still not written, a trigger drops the write.
func (s *Store) write(ctx context.Context, waiting, skipping string, k keys, args statement.Args) ([]poller.Result, error) {
	results := make([]poller.Result, len(k.ids))
	err := postgres.Retry(ctx, func() error {
		for i := range results {
			results[i] = poller.Result{Outcome: poller.LeaseLost}
		}
		for _, otherwise := range []poller.Outcome{poller.LeaseLost, poller.Refused} {
			waited, err := s.writeOnce(ctx, waiting, skipping, k, results, args)
			if err != nil || !waited {
				return err
			}
			unwritten := false
			for i := range results {
				if results[i].Outcome == poller.Locked {
					results[i].Outcome, unwritten = otherwise, true
				}
			}
			if !unwritten {
				return nil
			}
		}
		return nil
	})
	return results, err
}

// writeOnce fills in the results of the rows that are LeaseLost so far. If the
// statement waits too long for a row, the form that skips locked rows runs
// instead; waited is then false.
func (s *Store) writeOnce(
	ctx context.Context, waiting, skipping string, k keys, results []poller.Result, args statement.Args,
) (waited bool, err error) {
	args["lock_timeout"], waited = rowWait, true
	written, err := s.writeRows(ctx, waiting, results, args)
	if postgres.SQLState(err) == postgres.LockTimeout {
		if len(results) > fewRows {
			args["lock_timeout"] = skipWait
		}
		waited = false
		written, err = s.writeRows(ctx, skipping, results, args)
	}
	// A single row whose trigger waits for another row stays leased.
	if err != nil && (postgres.SQLState(err) != postgres.LockTimeout || len(results) > 1) {
		return waited, err
	}
	if written == len(results) {
		return waited, nil
	}
	return waited, s.classify(ctx, k, results)
}

// writeRows runs a statement that returns the rows it wrote, fills in their
// results and returns their number.
func (s *Store) writeRows(ctx context.Context, sql string, results []poller.Result, args statement.Args) (int, error) {
	rows, err := s.pool.Query(ctx, sql, args)
	if err != nil {
		return 0, err
	}
	var n int64
	var state string
	var kept bool
	var announced *string
	count := 0
	_, err = pgx.ForEachRow(rows, []any{&n, &state, &kept, &announced}, func() error {
		count++
		switch {
		case !kept:
			results[n-1] = poller.Result{Outcome: poller.Refused}
		case state == poller.StatePending:
			results[n-1] = poller.Result{Outcome: poller.Written}
		default:
			results[n-1] = poller.Result{Outcome: poller.Written, State: state}
		}
		return nil
	})
	return count, err
}

// classify fills in the results of the rows that were not written just now.
func (s *Store) classify(ctx context.Context, k keys, results []poller.Result) error {
	rows, err := s.pool.Query(ctx, outcomeSQL, statement.Args{"ids": k.ids, "leases": k.leases, "states": k.states, "refused": k.refused})
	if err != nil {
		return err
	}
	var n int64
	var state, word string
	_, err = pgx.ForEachRow(rows, []any{&n, &state, &word}, func() error {
		r := &results[n-1]
		if r.Outcome != poller.LeaseLost {
			return nil
		}
		switch word {
		case "written":
			r.Outcome = poller.Written
			if state != poller.StatePending {
				r.State = state
			}
		case "again":
			r.Outcome = poller.Locked
		case "refused":
			r.Outcome = poller.Refused
		case "gone":
			r.Outcome = poller.Missing
		}
		return nil
	})
	return err
}
