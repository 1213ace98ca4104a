package model

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/jackc/pgx/v5"
	"pgregory.net/rapid"

	"sumepoller/internal/operator"
	"sumepoller/internal/poller"
)

// insert adds a row as an older writer does, due long ago or later.
func (w *world) insert(t *rapid.T) {
	if len(w.rows) == 9 {
		t.SkipNow() // the table is full
	}
	r := &row{
		record: record{ID: fmt.Sprintf("job_%d", len(w.rows)+1), State: poller.StatePending, Status: unanswered},
		moved:  true, refusals: map[write]how{},
	}
	late := rapid.SampledFrom([]time.Duration{time.Second, time.Minute, hour, 24 * hour, -hour}).Draw(t, "late")
	r.Due = late > 0
	w.rows = append(w.rows, r)
	w.exec(`INSERT INTO video_jobs (job_id, next_poll_at) VALUES ($1, now() - $2::bigint * interval '1 microsecond')`, r.ID, late.Microseconds())
}

// delete takes a row out of the table.
func (w *world) delete(t *rapid.T) {
	r := w.one(t, w.which(func(r *row) bool { return r.State != deleted && !r.locked }))
	if rapid.IntRange(0, 2).Draw(t, "really") > 0 {
		t.SkipNow() // most rows stay
	}
	w.t.Logf("delete of %s", r.ID)
	r.State, r.Due = deleted, false
	w.exec(`DELETE FROM video_jobs WHERE job_id = $1`, r.ID)
}

// expire lets a lease run out, or makes it one from before a clock jumped.
func (w *world) expire(t *rapid.T) {
	r := w.one(t, w.which(func(r *row) bool { return r.State != deleted && r.Tenure == running && !r.locked }))
	r.Tenure = over
	until := rapid.SampledFrom([]string{"-1 second", "-1 second", "-1 second", "9 days"}).Draw(t, "until")
	r.ahead = until == "9 days"
	w.t.Logf("the lease of %s ends: %s", r.ID, until)
	w.exec(`UPDATE video_jobs SET leased_until = now() + $2::text::interval WHERE job_id = $1`, r.ID, until)
}

// pass makes every row due that nobody has locked.
func (w *world) pass(t *rapid.T) {
	rows := w.which(func(r *row) bool { return r.State == poller.StatePending && !r.Due && !r.locked })
	if len(rows) == 0 {
		t.SkipNow() // everything is due
	}
	for _, r := range rows {
		r.Due, r.moved = true, true
		w.exec(`UPDATE video_jobs SET next_poll_at = next_poll_at - interval '2 hours' WHERE job_id = $1`, r.ID)
	}
}

// backfill reopens a finished row, or makes a pending one due.
func (w *world) backfill(t *rapid.T) {
	r := w.one(t, w.which(func(r *row) bool { return r.State != deleted && !r.locked }))
	if _, err := w.hand.Backfill(w.ctx, operator.Backfill{JobIDs: []string{r.ID}}, time.Second); err != nil {
		w.disagree("backfill: %v", err)
	}
	w.t.Logf("backfill of %s", r.ID)
	r.reopen()
}

// stop finishes a pending row by hand.
func (w *world) stop(t *rapid.T) {
	r := w.one(t, w.which(func(r *row) bool { return r.State == poller.StatePending && !r.locked }))
	if _, err := w.hand.Stop(w.ctx, operator.Stop{JobIDs: []string{r.ID}}); err != nil {
		w.disagree("stop: %v", err)
	}
	w.t.Logf("stop of %s", r.ID)
	r.stop()
	w.announced[r.ID+" "+operator.StateStopped]++
}

const lookSQL = `
SELECT job_id, state, state = 'pending' AND next_poll_at <= now(), lease_id,
       CASE WHEN leased_until = '-infinity' THEN 0
            WHEN leased_until > now() AND leased_until < now() + interval '16 minutes' THEN 1
            ELSE 2 END,
       lost_leases, polls, consecutive_errors, not_found_answers, failing_since IS NOT NULL, coalesce(last_error, ''),
       coalesce(sume_status, $1), final_status IS NOT NULL, finished_at IS NOT NULL,
       coalesce(failing_since::text, ''),
       CASE WHEN leased_until > now() THEN extract(epoch FROM leased_until - now())::float8 ELSE 0 END,
       (extract(epoch FROM next_poll_at) * 1000000)::bigint
FROM video_jobs`

// compare holds the whole table against the model.
func (w *world) compare() {
	rows, err := w.pool.Query(w.ctx, lookSQL, unanswered)
	if err != nil {
		w.t.Fatalf("look at the table: %v", err)
	}
	found := 0
	var got record
	var lease [16]byte
	var since string
	var left float64
	var place int64
	_, err = pgx.ForEachRow(rows, []any{
		&got.ID, &got.State, &got.Due, &lease, &got.Tenure, &got.Lost, &got.Polls, &got.Errors, &got.NotFound, &got.Failing,
		&got.LastError, &got.Status, &got.Kept, &got.Finished, &since, &left, &place,
	}, func() error {
		found++
		got.Lease = lease
		w.compareRow(got, since, time.Duration(left*float64(time.Second)))
		w.comparePlace(w.row(got.ID), place)
		return nil
	})
	if err != nil {
		w.t.Fatalf("look at the table: %v", err)
	}
	if want := len(w.which(func(r *row) bool { return r.State != deleted })); found != want {
		w.disagree("the table holds %d rows, want %d", found, want)
	}
	w.compareReads()
	if err := w.pool.QueryRow(w.ctx, `SELECT (extract(epoch FROM now()) * 1000000)::bigint`).Scan(&w.looked); err != nil {
		w.t.Fatalf("ask for the time: %v", err)
	}
}

// comparePlace wants a row where it was among the due rows, unless something
// moved it.
func (w *world) comparePlace(r *row, place int64) {
	switch {
	case !r.moved && place != r.place:
		w.disagree("%s lost its place", r.ID)
	case r.behind && r.Due && place <= w.looked:
		w.disagree("%s was read and released, and is not behind the others that are due", r.ID)
	}
	r.place, r.moved, r.behind = place, false, false
}

func (w *world) compareRow(got record, since string, left time.Duration) {
	r := w.row(got.ID)
	if r == nil {
		w.disagree("the table holds %s, the model does not", got.ID)
	}
	if diff := cmp.Diff(r.record, got); diff != "" {
		w.disagree("the table strays from the model (-want +got):\n%s", diff)
	}
	if r.Tenure == running && (left > r.length || left < r.length-2*time.Minute) {
		w.disagree("the lease of %s has %v left, want %v at most", r.ID, left, r.length)
	}
	if r.failing != "" && since != "" && since != r.failing {
		w.disagree("%s fails since %s, want still %s", r.ID, since, r.failing)
	}
	r.failing = since
}

// listen begins to listen, and lets what earlier checks announced go by.
func (w *world) listen() {
	if _, err := w.listener.Exec(w.ctx, `LISTEN video_jobs_finished`); err != nil {
		w.t.Fatalf("listen: %v", err)
	}
	w.announcements()
}

// announcements returns what was announced since it was asked last. Its own
// mark comes after all that was committed before.
func (w *world) announcements() map[string]int {
	const mark = "everything before this"
	w.exec(`SELECT pg_notify('video_jobs_finished', $1)`, mark)
	ctx, cancel := context.WithTimeout(w.ctx, 2*patience)
	defer cancel()
	for got := map[string]int{}; ; {
		n, err := w.listener.WaitForNotification(ctx)
		if err != nil {
			w.t.Fatalf("wait for announcements: %v", err)
		}
		if n.Payload == mark {
			return got
		}
		var job struct {
			ID    string `json:"job_id"`
			State string `json:"state"`
		}
		if err := json.Unmarshal([]byte(n.Payload), &job); err != nil {
			w.disagree("announcement %q: %v", n.Payload, err)
		}
		got[job.ID+" "+job.State]++
	}
}

// heard wants each finish announced once.
func (w *world) heard() {
	if diff := cmp.Diff(w.announced, w.announcements()); diff != "" {
		w.disagree("announced (-want +got):\n%s", diff)
	}
}
