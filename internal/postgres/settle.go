package postgres

import (
	"context"
	"fmt"
	"strings"

	"github.com/jackc/pgx/v5"

	"sumepoller/internal/poller"
)

// Both forms of a locking statement bound their waits: for a row that another
// program holds, and, where such rows are skipped, for what else a commit may
// have to wait for.
const (
	rowWait  = "300ms"
	skipWait = "2s"
)

// outcomeSQL tells, with a snapshot of its own, what became of settlements that
// settleSQL did not return.
const outcomeSQL = `
SELECT b.n,
       CASE
           -- Gone, or under another lease.
           WHEN j.lease_id IS DISTINCT FROM b.lease_id::uuid THEN 'lost'
           -- An earlier attempt wrote it and its answer was lost.
           WHEN j.leased_until = '-infinity' AND j.state = b.state THEN 'done'
           -- Still ours: another program held the row, or changed it between
           -- the statement's snapshot and its lock.
           WHEN j.leased_until > '-infinity' AND j.state = 'pending' THEN 'again'
           ELSE 'lost'
       END
FROM unnest((SELECT $1::text[]), (SELECT $2::text[]), (SELECT $3::text[]))
     WITH ORDINALITY AS b (job_id, lease_id, state, n)
LEFT JOIN video_jobs AS j ON j.job_id = b.job_id`

// Settle implements poller.Queue. A settlement that Postgres refuses for its
// content is written without the terminal answer. One that is refused even so,
// by a constraint or trigger of the user's, comes back as poller.Lost without an
// error: its lease is left to run out, so that the row comes back, ever more
// rarely, and nobody else's row waits for it. With an error come the outcomes of
// the settlements before it.
func (s *Store) Settle(ctx context.Context, batch []poller.Settlement) ([]poller.Outcome, error) {
	outcomes := make([]poller.Outcome, 0, len(batch))
	for part := range parts(batch) {
		got, err := s.settlePart(ctx, part)
		outcomes = append(outcomes, got...)
		if err != nil {
			return outcomes, fmt.Errorf("settle %s: %w", named(part[0].JobID, len(part)), err)
		}
	}
	return outcomes, nil
}

func (s *Store) settlePart(ctx context.Context, batch []poller.Settlement) ([]poller.Outcome, error) {
	c := columnsOf(batch)
	outcomes, err := s.write(ctx, settleSQL, settleSkippingSQL, c.keys,
		c.delays, c.polled, c.statuses, c.errors, c.finals)
	switch {
	case err == nil:
		return outcomes, nil
	case !refused(err):
		return nil, err
	case len(batch) > 1:
		outcomes = outcomes[:0]
		for i := range batch {
			one, err := s.settlePart(ctx, batch[i:i+1])
			if err != nil {
				return outcomes, err
			}
			outcomes = append(outcomes, one...)
		}
		return outcomes, nil
	case len(batch[0].Final) > 0:
		bare := batch[0]
		bare.Final = nil
		return s.settlePart(ctx, []poller.Settlement{bare})
	}
	return []poller.Outcome{poller.Lost}, nil
}

// refused tells that Postgres, or a constraint or trigger of the user's, did
// not take the values themselves: a faulty value, a broken constraint, a limit,
// an exception, or a code that is none of PostgreSQL's own.
func refused(err error) bool {
	code := sqlState(err)
	if len(code) != 5 {
		return false
	}
	switch class := code[:2]; class {
	case "22", "23", "54", "P0":
		return true
	case "72", "XX":
		return false
	default:
		return class[0] >= '6' && class[0] <= '9' || class[0] >= 'I'
	}
}

// keys name the rows of a batch, column by column. states holds what each row's
// state is to be once it is written.
type keys struct{ ids, leases, states []string }

// write runs one of the statements that lock rows by their keys, and tells what
// became of each row. Where it has to wait for a row it is run again in the form
// that skips such rows.
func (s *Store) write(ctx context.Context, waiting, skipping string, k keys, values ...any) ([]poller.Outcome, error) {
	outcomes := make([]poller.Outcome, len(k.ids))
	err := retry(ctx, func() error {
		for i := range outcomes {
			outcomes[i] = poller.Lost
		}
		args := append([]any{k.ids, k.leases, k.states}, values...)
		wrote, err := s.positions(ctx, waiting, append(args, rowWait)...)
		if sqlState(err) == lockNotAvailable {
			wrote, err = s.positions(ctx, skipping, append(args, skipWait)...)
		}
		if err != nil && sqlState(err) != lockNotAvailable {
			return err
		}
		for _, n := range wrote {
			outcomes[n-1] = poller.Done
		}
		if len(wrote) == len(outcomes) {
			return nil
		}
		return s.classify(ctx, k, outcomes)
	})
	return outcomes, err
}

// lockNotAvailable is the code of a lock_timeout.
const lockNotAvailable = "55P03"

func (s *Store) positions(ctx context.Context, sql string, args ...any) ([]int64, error) {
	rows, err := s.pool.Query(ctx, sql, args...)
	if err != nil {
		return nil, err
	}
	return pgx.CollectRows(rows, pgx.RowTo[int64])
}

// classify fills in the outcomes of the rows that were not written just now.
func (s *Store) classify(ctx context.Context, k keys, outcomes []poller.Outcome) error {
	rows, err := s.pool.Query(ctx, outcomeSQL, k.ids, k.leases, k.states)
	if err != nil {
		return err
	}
	var n int64
	var word string
	_, err = pgx.ForEachRow(rows, []any{&n, &word}, func() error {
		switch {
		case outcomes[n-1] == poller.Done:
		case word == "done":
			outcomes[n-1] = poller.Done
		case word == "again":
			outcomes[n-1] = poller.Again
		}
		return nil
	})
	return err
}

// named tells what a batch is about in an error. An id is a user's text: it is
// cut, and control characters are left out.
func named(first string, n int) string {
	first = strings.Map(func(r rune) rune {
		if r < ' ' || r == 0x7f {
			return -1
		}
		return r
	}, first)
	if len(first) > 80 {
		first = strings.ToValidUTF8(first[:80], "") + "…"
	}
	if n > 1 {
		return fmt.Sprintf("%s and %d more", first, n-1)
	}
	return first
}
