package load

import (
	"context"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"sumepoller/internal/poller"
)

// watch notes how late each read begins. The database's clock is this
// machine's.
type watch struct {
	poller.Reader
	due map[string]time.Time

	mu    sync.Mutex
	late  []float64
	early int
}

// learn reads when each job is due.
func (w *watch) learn(ctx context.Context, pool *pgxpool.Pool) error {
	w.due = map[string]time.Time{}
	rows, err := pool.Query(ctx, `SELECT job_id, next_poll_at FROM video_jobs`)
	if err != nil {
		return err
	}
	var id string
	var at time.Time
	_, err = pgx.ForEachRow(rows, []any{&id, &at}, func() error {
		w.due[id] = at
		return nil
	})
	return err
}

// Status implements poller.Reader.
func (w *watch) Status(ctx context.Context, id string) (poller.Answer, error) {
	late := time.Since(w.due[id])
	w.mu.Lock()
	w.late = append(w.late, late.Seconds())
	if late < 0 {
		w.early++
	}
	w.mu.Unlock()
	return w.Reader.Status(ctx, id)
}
