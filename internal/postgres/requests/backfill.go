package requests

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5"

	"sumepoller/internal/operator"
)

// maxBackfill bounds one transaction, and the memory for its ids.
const maxBackfill = 250_000

// Backfill counts the rows and, unless it is a dry run, registers, reopens and
// makes them due.
func (t *Table) Backfill(ctx context.Context, b operator.Backfill, pace time.Duration) (operator.Backfilled, error) {
	var done operator.Backfilled
	work := func(tx pgx.Tx) error {
		rows, err := pick(ctx, tx, b, pace)
		if err != nil {
			return err
		}
		note, err := stateNote(ctx, tx, b, rows)
		if err != nil {
			return err
		}
		if b.DryRun {
			done = rows.count()
		} else {
			done, err = rows.apply(ctx, tx, b, pace)
		}
		done.Note = note
		return err
	}
	var err error
	if b.DryRun {
		err = t.inTx(ctx, pgx.TxOptions{IsoLevel: pgx.RepeatableRead, AccessMode: pgx.ReadOnly}, work)
	} else {
		err = t.change(ctx, work)
	}
	if err != nil {
		return operator.Backfilled{}, wrap("backfill", "backfill", err)
	}
	return done, nil
}
