package model

import (
	"context"

	"github.com/jackc/pgx/v5"
	"pgregory.net/rapid"

	"sumepoller/internal/poller"
)

// writer is the older worker: it knows three columns and holds row locks for
// its whole read.
type writer struct {
	tx   pgx.Tx
	rows []*row
}

// begin lets the older worker lock due rows, leased ones too.
func (w *world) begin(t *rapid.T) {
	due := w.which(func(r *row) bool { return r.State == poller.StatePending && r.Due })
	if w.writer != nil || len(due) == 0 {
		t.SkipNow() // nothing to lock
	}
	n := rapid.IntRange(1, 2).Draw(t, "locks")
	tx, err := w.pool.Begin(w.ctx)
	if err != nil {
		w.t.Fatalf("begin: %v", err)
	}
	w.writer = &writer{tx: tx}
	rows, err := tx.Query(w.ctx, `
		SELECT job_id FROM video_jobs WHERE state = 'pending' AND next_poll_at <= now()
		ORDER BY next_poll_at, job_id LIMIT $1 FOR UPDATE SKIP LOCKED`, n)
	if err != nil {
		w.t.Fatalf("lock as the older worker: %v", err)
	}
	ids, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if err != nil || len(ids) != min(n, len(due)) {
		w.disagree("the older worker got %v of %d due rows (%v)", ids, len(due), err)
	}
	w.t.Logf("the older worker locks %v", ids)
	for _, id := range ids {
		r := w.row(id)
		r.locked = true
		w.writer.rows = append(w.writer.rows, r)
	}
}

// end lets the older worker write what it read.
func (w *world) end(t *rapid.T) {
	if w.writer == nil {
		t.SkipNow() // it holds nothing
	}
	w.commit(t)
}

// commit ends the older worker's transaction, if there is one.
func (w *world) commit(t *rapid.T) {
	if w.writer == nil {
		return
	}
	after, write := w.draft(t)
	if err := write(); err != nil {
		w.t.Fatalf("write as the older worker: %v", err)
	}
	after()
}

// draft draws what the older worker writes: finished, later, due again, or
// nothing since it crashed. write commits it, after does so in the model.
func (w *world) draft(t *rapid.T) (after func(), write func() error) {
	tx, rows := w.writer.tx, w.writer.rows
	ends := make([]string, len(rows))
	for i := range rows {
		ends[i] = rapid.SampledFrom([]string{"completed", "later", "again"}).Draw(t, "end")
	}
	crash := rapid.IntRange(0, 4).Draw(t, "crash") == 0
	w.t.Logf("the older worker writes %v, crash: %v", ends, crash)
	write = func() error {
		if crash {
			return tx.Rollback(w.ctx)
		}
		for i, r := range rows {
			const sql = `UPDATE video_jobs SET state = CASE WHEN $2::text = 'completed' THEN 'completed' ELSE state END,
				next_poll_at = now() + CASE WHEN $2::text = 'later' THEN interval '1 hour' ELSE interval '0' END WHERE job_id = $1`
			if _, err := tx.Exec(w.ctx, sql, r.ID, ends[i]); err != nil {
				return err
			}
		}
		return tx.Commit(w.ctx)
	}
	after = func() {
		w.writer = nil
		for i, r := range rows {
			r.locked = false
			switch {
			case crash:
			case ends[i] == "completed":
				r.State, r.Due, r.moved = "completed", false, true // neither announced nor marked as finished
			default:
				r.Due, r.moved, r.behind = ends[i] == "again", true, false
			}
		}
	}
	return after, write
}

// drop rolls back what a failed check left open.
func (w *writer) drop() {
	if w != nil {
		_ = w.tx.Rollback(context.Background())
	}
}
