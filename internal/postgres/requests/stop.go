package requests

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"

	"sumepoller/internal/operator"
)

// lockPending locks the rows to stop, in the order of job_id. coalesce hides
// from the planner that the due index could serve: each row is found by its id.
const lockPending = `
SELECT v.job_id
  FROM video_jobs v
 WHERE v.job_id = ANY ($1::text[]) AND coalesce(v.state, '') = 'pending'
 ORDER BY v.job_id
   FOR NO KEY UPDATE`

// stopRows finishes the locked rows and announces each, in the transaction
// that finishes it. The lease's mark goes, so that a read under way, when it
// is settled, finds nothing of its own and comes out lost.
const stopRows = `
WITH ended AS (
    UPDATE video_jobs v
       SET state        = 'stopped',
           finished_at  = statement_timestamp(),
           leased_until = '-infinity',
           lease_id     = '00000000-0000-0000-0000-000000000000'
     WHERE v.job_id = ANY ($1::text[]) AND coalesce(v.state, '') = 'pending'
 RETURNING v.job_id
), announced AS (
    SELECT pg_notify('video_jobs_finished', json_build_object('job_id', e.job_id, 'state', 'stopped')::text)
      FROM ended e
)
SELECT count(*) FROM announced`

// countKnown counts the ids that are in the table, whatever their state.
const countKnown = `
SELECT count(*) FROM video_jobs v WHERE v.job_id = ANY ($1::text[])`

// Stop finishes pending rows as stopped.
func (h *Table) Stop(ctx context.Context, s operator.Stop) (operator.Stopped, error) {
	var ended, known int
	err := h.change(ctx, func(tx pgx.Tx) error {
		held, err := tx.Query(ctx, lockPending, list(s.JobIDs))
		if err != nil {
			return fmt.Errorf("lock jobs: %w", err)
		}
		ids, err := pgx.CollectRows(held, pgx.RowTo[string])
		if err != nil {
			return fmt.Errorf("lock jobs: %w", err)
		}
		if err := tx.QueryRow(ctx, stopRows, list(ids)).Scan(&ended); err != nil {
			return fmt.Errorf("stop jobs: %w", err)
		}
		if err := tx.QueryRow(ctx, countKnown, list(s.JobIDs)).Scan(&known); err != nil {
			return fmt.Errorf("count jobs: %w", err)
		}
		return nil
	})
	if err != nil {
		return operator.Stopped{}, attempted("stop", "stop.job_ids", err)
	}
	return operator.Stopped{
		Mode:            operator.ModeStop,
		Finished:        map[string]int{operator.StateStopped: ended},
		AlreadyFinished: known - ended,
		Unknown:         len(s.JobIDs) - known,
		Note:            operator.StopNote,
	}, nil
}
