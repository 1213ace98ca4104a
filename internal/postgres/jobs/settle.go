package jobs

import (
	"context"
	"fmt"
	"strings"

	"github.com/jackc/pgx/v5"

	"sumepoller/internal/poller"
	"sumepoller/internal/postgres"
)

// Both forms of a locking statement bound their waits: for a row that another
// program holds, and, where such rows are skipped, for what else a commit may
// have to wait for.
const (
	rowWait  = "300ms"
	skipWait = "2s" // rowWait for fewRows and less: a larger batch in which one row's trigger waits is halved until the row is found
	fewRows  = 32
)

// outcomeSQL reports, with a later snapshot, how the rows ended that a
// settle or a release did not return.
const outcomeSQL = `
SELECT b.n, coalesce(j.state, ''),
       CASE
           WHEN j.job_id IS NULL THEN 'gone'
           -- Under another lease.
           WHEN j.lease_id IS DISTINCT FROM b.lease_id::uuid THEN 'lost'
           -- Still held, as settleHeld has it: another program held the row, or
           -- changed it between the statement's snapshot and its lock, or a
           -- trigger dropped the write.
           WHEN j.state = 'pending'
                AND (j.leased_until > '-infinity' OR b.refused AND (j.finished_at IS NOT NULL OR j.next_poll_at <= now())) THEN 'again'
           -- An earlier attempt wrote it and its answer was lost.
           WHEN j.leased_until = '-infinity' AND j.state = b.state THEN 'done'
           -- So it did, and a trigger turned the finish back into pending.
           WHEN j.leased_until = '-infinity' AND j.state = 'pending' THEN 'declined'
           ELSE 'lost'
       END
FROM unnest((SELECT $1::text[]), (SELECT $2::text[]), (SELECT $3::text[]), (SELECT $4::boolean[]))
     WITH ORDINALITY AS b (job_id, lease_id, state, refused, n)
LEFT JOIN video_jobs AS j ON j.job_id = b.job_id`

// Settle implements poller.Queue.
func (s *Store) Settle(ctx context.Context, batch []poller.Settlement) ([]poller.Result, error) {
	results := make([]poller.Result, 0, len(batch))
	for part := range parts(batch) {
		got, err := s.settlePart(ctx, part)
		results = append(results, got...)
		if err != nil {
			return results, fmt.Errorf("settle %s: %w", named(part[0].JobID, len(part)), err)
		}
	}
	return results, nil
}

// settlePart writes settlements in one statement, and apart from each other
// where the table refuses that.
func (s *Store) settlePart(ctx context.Context, batch []poller.Settlement) ([]poller.Result, error) {
	results, err := s.settleOnce(ctx, batch, true)
	if postgres.SQLState(err) == queueFull {
		if results, announced := s.settleOnce(ctx, batch, false); announced == nil {
			return s.explainSettled(ctx, batch, silent(batch, results, err)), nil
		}
	}
	switch {
	case err == nil:
		return s.explainSettled(ctx, batch, results), nil
	case !postgres.Refused(err) && (!postgres.MaybeOneRow(err) || postgres.Transient(err)):
		return nil, err
	}
	if _, err := s.settleOnce(ctx, nil, true); err != nil {
		return nil, err // without any row: the statement itself is refused
	}
	switch {
	case len(batch) > 1:
	case postgres.Refused(err), batch[0].Class == poller.WriteRefused:
		return s.settleRefused(ctx, batch[0], err)
	default:
		return nil, err
	}
	return s.settleHalves(ctx, batch)
}

// settleHalves settles a batch that failed in two parts. An error of the
// infrastructure's classes is one row's only where others are written beside it.
func (s *Store) settleHalves(ctx context.Context, batch []poller.Settlement) ([]poller.Result, error) {
	half := len(batch) / 2
	first, failed := s.settlePart(ctx, batch[:half])
	if failed != nil && !postgres.MaybeOneRow(failed) {
		return first, failed
	}
	second, err := s.settlePart(ctx, batch[half:])
	switch {
	case failed != nil && err != nil:
		return first, err
	case err != nil && !postgres.MaybeOneRow(err):
		return append(first, second...), err
	case failed != nil:
		first = s.decline(batch[:half], failed)
	case err != nil:
		second = s.decline(batch[half:], err)
	}
	return append(first, second...), nil
}

// decline returns the results of settlements that failed with the error cause.
func (s *Store) decline(batch []poller.Settlement, cause error) []poller.Result {
	results := make([]poller.Result, len(batch))
	for i, one := range batch {
		s.claim.leaveOut(one.JobID)
		refusal := refusalOf(one.JobID, cause, poller.WriteSettle)
		results[i] = poller.Result{Outcome: poller.Refused, Error: &refusal}
	}
	return results
}

// queueFull is the code of a commit that the server's queue of notifications
// has no room for.
const queueFull = "54000"

// silent notes with the first job that was finished why no announcement was
// made.
func silent(batch []poller.Settlement, results []poller.Result, cause error) []poller.Result {
	for i := range results {
		if results[i].State != "" {
			refusal := refusalOf(batch[i].JobID, cause, poller.WriteAnnouncement)
			results[i].Error = &refusal
			break
		}
	}
	return results
}

// settleRefused writes a settlement that the table refused with the error cause
// without its terminal answer, where a value or a limit is at fault. Otherwise
// the settlement is declined.
func (s *Store) settleRefused(ctx context.Context, one poller.Settlement, cause error) ([]poller.Result, error) {
	if class := postgres.SQLState(cause)[:2]; len(one.Final) > 0 && (class == "22" || class == "54") {
		bare := one
		bare.Final = nil
		results, err := s.settlePart(ctx, []poller.Settlement{bare})
		if err == nil && results[0].State != "" {
			refusal := refusalOf(one.JobID, cause, poller.WriteFinalStatus)
			results[0].Error = &refusal
		}
		return results, err
	}
	return s.decline([]poller.Settlement{one}, cause), nil
}

// explainSettled completes the results of settlements that raised no error.
func (s *Store) explainSettled(ctx context.Context, batch []poller.Settlement, results []poller.Result) []poller.Result {
	for i, one := range batch {
		s.explain(ctx, &results[i], one.JobID, poller.WriteSettle)
	}
	return results
}

// settleOnce runs the settle's statement.
func (s *Store) settleOnce(ctx context.Context, batch []poller.Settlement, announce bool) ([]poller.Result, error) {
	c := columnsOf(batch)
	return s.write(ctx, settleSQL, settleSkippingSQL, c.keys, c.delays, c.polled, c.statuses, c.errors, c.notFound, c.finals, c.refused, announce)
}

// keys name the rows of a batch, column by column. states holds what each row's
// state is to be once it is written, refused which of them are errors that
// follow a settlement that the table refused.
type keys struct {
	ids, leases, states []string
	refused             []bool
}

// write runs one of the statements that lock rows by their keys, and returns how
// each row ended. Rows that are held, locked by nobody else and yet not written
// are tried once more: the row may have changed between the statement's snapshot
// and its lock. Otherwise a trigger drops the write.
func (s *Store) write(ctx context.Context, waiting, skipping string, k keys, values ...any) ([]poller.Result, error) {
	results := make([]poller.Result, len(k.ids))
	err := postgres.Retry(ctx, func() error {
		for i := range results {
			results[i] = poller.Result{Outcome: poller.LeaseLost}
		}
		for _, otherwise := range []poller.Outcome{poller.LeaseLost, poller.Refused} {
			waited, err := s.writeOnce(ctx, waiting, skipping, k, results, values)
			if err != nil || !waited {
				return err
			}
			dropped := false
			for i := range results {
				if results[i].Outcome == poller.Locked {
					results[i].Outcome, dropped = otherwise, true
				}
			}
			if !dropped {
				return nil
			}
		}
		return nil
	})
	return results, err
}

// writeOnce fills in the results of the rows that are lost so far. Where it has
// to wait for a row it runs the form of the statement that skips such rows;
// waited is then false.
func (s *Store) writeOnce(
	ctx context.Context, waiting, skipping string, k keys, results []poller.Result, values []any,
) (waited bool, err error) {
	args := append([]any{k.ids, k.leases, k.states}, values...)
	wrote, err := s.wrote(ctx, waiting, results, append(args, rowWait)...)
	waited = true
	if postgres.SQLState(err) == postgres.LockTimeout {
		wait := skipWait
		if len(results) <= fewRows {
			wait = rowWait
		}
		wrote, err = s.wrote(ctx, skipping, results, append(args, wait)...)
		waited = false
	}
	// A row that waits for another alone, in its trigger, stays held.
	if err != nil && (postgres.SQLState(err) != postgres.LockTimeout || len(results) > 1) {
		return waited, err
	}
	if wrote == len(results) {
		return waited, nil
	}
	return waited, s.classify(ctx, k, results)
}

// wrote runs a statement that returns the rows it wrote, fills in their results
// and returns their number.
func (s *Store) wrote(ctx context.Context, sql string, results []poller.Result, args ...any) (int, error) {
	rows, err := s.pool.Query(ctx, sql, args...)
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
	rows, err := s.pool.Query(ctx, outcomeSQL, k.ids, k.leases, k.states, k.refused)
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
		case "done":
			r.Outcome = poller.Written
			if state != poller.StatePending {
				r.State = state
			}
		case "again":
			r.Outcome = poller.Locked
		case "declined":
			r.Outcome = poller.Refused
		case "gone":
			r.Outcome = poller.Missing
		}
		return nil
	})
	return err
}

// collectIDs reads a column of strings.
func collectIDs(rows pgx.Rows) ([]string, error) { return pgx.CollectRows(rows, pgx.RowTo[string]) }

// named returns what a batch is about, for an error.
func named(first string, n int) string {
	first = cut(first)
	if n > 1 {
		return fmt.Sprintf("%s and %d more", first, n-1)
	}
	return first
}

// cut makes a user's string fit for an error or a log: at most 80 bytes, without
// control characters.
func cut(s string) string {
	s = strings.Map(func(r rune) rune {
		if r < ' ' || r == 0x7f {
			return -1
		}
		return r
	}, s)
	if len(s) > 80 {
		s = strings.ToValidUTF8(s[:80], "") + "…"
	}
	return s
}
