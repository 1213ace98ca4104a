package load

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5"

	"sumepoller/internal/poller"
)

// The held-lock loop as people write it: the row's lock is the claim. It is
// held until the answer has come.
const (
	heldClaimSQL = `
SELECT job_id
FROM video_jobs
WHERE state = 'pending' AND next_poll_at <= now()
ORDER BY next_poll_at
LIMIT 1
FOR UPDATE SKIP LOCKED`

	heldFinishSQL = `UPDATE video_jobs SET state = $2 WHERE job_id = $1`
)

func runHeldLock(ctx context.Context, s Spec, api poller.Reader) (Result, error) {
	conn, err := pgx.Connect(ctx, s.DatabaseURL)
	if err != nil {
		return Result{}, err
	}
	defer func() { _ = conn.Close(ctx) }()
	r := Result{Began: time.Now()}
	for r.Reads < s.Jobs {
		if err := readOneHeld(ctx, conn, api); err != nil {
			return r, err
		}
		r.Reads++
	}
	r.Ended = time.Now()
	return r, nil
}

// readOneHeld reads one job, with four statements.
func readOneHeld(ctx context.Context, conn *pgx.Conn, api poller.Reader) error {
	tx, err := conn.Begin(ctx)
	if err != nil {
		return err
	}
	defer func() { _ = tx.Rollback(ctx) }()
	var id string
	if err := tx.QueryRow(ctx, heldClaimSQL).Scan(&id); err != nil {
		return err
	}
	answer, err := api.Status(ctx, id)
	if err != nil {
		return err
	}
	if _, err := tx.Exec(ctx, heldFinishSQL, id, answer.Status); err != nil {
		return err
	}
	return tx.Commit(ctx)
}
