package load

import (
	"context"
	"errors"
	"time"

	"github.com/jackc/pgx/v5"

	"sumepoller/internal/poller"
)

// The held-lock loop as people write it: the row's lock is the claim, and is
// held until the answer is there.
const (
	heldClaimSQL = `
SELECT job_id
FROM video_jobs
WHERE state = 'pending' AND next_poll_at <= now()
ORDER BY next_poll_at
LIMIT 1
FOR UPDATE SKIP LOCKED`

	heldFinishSQL = `UPDATE video_jobs SET state = $2 WHERE job_id = $1`

	heldLaterSQL = `UPDATE video_jobs SET next_poll_at = now() + $2::bigint * interval '1 microsecond' WHERE job_id = $1`
)

func held(ctx context.Context, s Spec, api poller.Reader) (Result, error) {
	conn, err := pgx.Connect(ctx, s.DatabaseURL)
	if err != nil {
		return Result{}, err
	}
	defer func() { _ = conn.Close(ctx) }()
	r := Result{Began: time.Now()}
	for r.Reads < s.Jobs {
		if err := heldOne(ctx, conn, api); err != nil {
			return r, err
		}
		r.Reads++
	}
	r.Ended = time.Now()
	return r, nil
}

// heldOne is one turn: four statements, one row.
func heldOne(ctx context.Context, conn *pgx.Conn, api poller.Reader) error {
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
	var fault *poller.ReadError
	switch {
	case err != nil && !errors.As(err, &fault):
		return err
	case err == nil && answer.Terminal:
		_, err = tx.Exec(ctx, heldFinishSQL, id, answer.Status)
	default:
		_, err = tx.Exec(ctx, heldLaterSQL, id, (15 * time.Second).Microseconds())
	}
	if err != nil {
		return err
	}
	return tx.Commit(ctx)
}
