package requests

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"

	"sumepoller/internal/operator"
	"sumepoller/internal/postgres/statement"
)

var (
	stopLockSQL  = statement.Read(files, "stop_lock")
	stopSQL      = statement.Read(files, "stop")
	stopKnownSQL = statement.Read(files, "stop_known")
)

// Stop finishes pending rows as stopped.
func (t *Table) Stop(ctx context.Context, s operator.Stop) (operator.Stopped, error) {
	var ended, known int
	err := t.change(ctx, func(tx pgx.Tx) error {
		locked, err := tx.Query(ctx, stopLockSQL, statement.Args{"job_ids": list(s.JobIDs)})
		if err != nil {
			return fmt.Errorf("lock jobs: %w", err)
		}
		ids, err := pgx.CollectRows(locked, pgx.RowTo[string])
		if err != nil {
			return fmt.Errorf("lock jobs: %w", err)
		}
		if err := tx.QueryRow(ctx, stopSQL, statement.Args{"job_ids": list(ids)}).Scan(&ended); err != nil {
			return fmt.Errorf("stop jobs: %w", err)
		}
		if err := tx.QueryRow(ctx, stopKnownSQL, statement.Args{"job_ids": list(s.JobIDs)}).Scan(&known); err != nil {
			return fmt.Errorf("count jobs: %w", err)
		}
		return nil
	})
	if err != nil {
		return operator.Stopped{}, wrap("stop", "stop.job_ids", err)
	}
	return operator.Stopped{
		Mode:            operator.ModeStop,
		Finished:        map[string]int{operator.StateStopped: ended},
		AlreadyFinished: known - ended,
		Unknown:         len(s.JobIDs) - known,
		Note:            operator.StopNote,
	}, nil
}
