package requests_test

import (
	"encoding/json"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"sumepoller/internal/operator"
	"sumepoller/internal/pgtest"
	"sumepoller/internal/postgres/requests"
)

func TestBackfill_ConcurrentIDs(t *testing.T) {
	t.Parallel()
	db := newTable(t)
	ids := pgtest.Names("job_", 20_000)
	body, err := json.Marshal(map[string]any{"backfill": map[string]any{"job_ids": ids}})
	if err != nil {
		t.Fatal(err)
	}
	request, err := operator.ParseRequest(body)
	if err != nil {
		t.Fatal(err)
	}
	pace := request.Backfill.Pace(120, 10_000)
	var both sync.WaitGroup
	did := make([]operator.Backfilled, 2)
	for i := range did {
		both.Go(func() { did[i] = db.backfill(*request.Backfill, pace) })
	}
	both.Wait()
	if got := did[0].Registered + did[1].Registered; got != 20_000 {
		t.Errorf("registered %d rows in all, want 20000", got)
	}
	if got := did[0].Reopened + did[1].Reopened; got != 0 {
		t.Errorf("the two requests moved each other's rows: %d", got)
	}
	if n := pgtest.Value[int](db.DB, `SELECT count(*) FROM video_jobs WHERE next_poll_at <= now()`); n != 100 {
		t.Errorf("%d rows are due now, want 100", n)
	}
	// What comes meanwhile stands behind no more than the rows of its second.
	db.Exec(`INSERT INTO video_jobs (job_id, next_poll_at) VALUES ('live', now() + interval '5 minutes')`)
	if n := pgtest.Value[int](db.DB, `SELECT count(*) FROM video_jobs v, video_jobs l WHERE l.job_id = 'live' AND v.next_poll_at < l.next_poll_at`); n > 100+36 {
		t.Errorf("%d rows stand before a live one, want at most 136", n)
	}
}

func TestBackfill_ConcurrentLimit(t *testing.T) {
	t.Parallel()
	db := newTable(t)
	db.Exec(`INSERT INTO video_jobs (job_id, state, created_at) SELECT 'job_' || i, 'failed', now() - i * interval '1 s' FROM generate_series(1, 50) i`)
	// Both have picked their rows and wait for the first of them.
	release := db.Lock(db.Strings(`SELECT job_id FROM video_jobs ORDER BY created_at LIMIT 10`)...)
	var both sync.WaitGroup
	did := make([]operator.Backfilled, 2)
	for i := range did {
		both.Go(func() { did[i] = db.backfill(operator.Backfill{States: []string{"failed"}, Limit: 10}, time.Second) })
	}
	db.AwaitLockWaits(2)
	release()
	both.Wait()
	if got := did[0].Reopened + did[1].Reopened; got != 10 {
		t.Errorf("reopened %d rows in all, want 10", got)
	}
	if n := pgtest.Value[int](db.DB, `SELECT count(*) FROM video_jobs WHERE state = 'pending' AND created_at <= now() - interval '41 s'`); n != 10 {
		t.Errorf("%d of the oldest 10 are pending", n)
	}
}

func TestRequests_Deadlock(t *testing.T) {
	t.Parallel()
	db := newTable(t)
	ids := pgtest.Names("job_", 400)
	backwards := make([]string, 0, len(ids))
	for i := range ids {
		backwards = append(backwards, ids[len(ids)-1-i])
	}
	db.Table = requests.New(pgtest.Pool(t, db.With("pool_max_conns", "12")))
	var all sync.WaitGroup
	for range 10 {
		all.Go(func() { db.backfill(operator.Backfill{JobIDs: ids}, time.Second) })
		all.Go(func() { db.backfill(operator.Backfill{JobIDs: backwards[:300]}, time.Millisecond) })
		all.Go(func() { db.backfill(operator.Backfill{States: []string{"stopped"}, Overdue: true}, time.Second) })
		all.Go(func() { db.stop(backwards...) })
	}
	all.Wait()
	if n := pgtest.Value[int](db.DB, `SELECT deadlocks FROM pg_stat_database WHERE datname = current_database()`); n != 0 {
		t.Errorf("%d deadlocks", n)
	}
	if n := pgtest.Value[int](db.DB, `SELECT count(*) FROM video_jobs WHERE state IN ('pending', 'stopped')`); n != 400 {
		t.Errorf("%d rows, want 400", n)
	}
}

func TestRequests_Unprepared(t *testing.T) {
	t.Parallel()
	db := newTable(t)
	db.Exec(everyKind)
	table := requests.New(pgtest.Pool(t, db.With("default_query_exec_mode", "exec")))
	after := time.Now().Add(-100 * 24 * time.Hour)
	did, err := table.Backfill(t.Context(), operator.Backfill{
		JobIDs: []string{"new"}, States: []string{"failed"}, Overdue: true, CreatedAfter: &after, Limit: 100,
	}, 8640*time.Millisecond)
	if want := (operator.Backfilled{Registered: 1, Reopened: 3}); err != nil || did != want {
		t.Errorf("Backfill = %+v, %v, want %+v", did, err, want)
	}
	if _, err := table.Inspect(t.Context(), operator.Inspect{JobIDs: []string{"done"}}, 100); err != nil {
		t.Errorf("Inspect: %v", err)
	}
	if _, err := table.Stop(t.Context(), operator.Stop{JobIDs: []string{"new"}}); err != nil {
		t.Errorf("Stop: %v", err)
	}
}

// listen returns a client that listens for finished jobs, and for a marker.
func (db *table) listen() *pgx.Conn {
	db.Helper()
	conn, err := pgx.Connect(db.Context(), db.URL)
	if err != nil {
		db.Fatal(err)
	}
	db.Cleanup(func() { _ = conn.Close(db.Context()) })
	if _, err := conn.Exec(db.Context(), `LISTEN video_jobs_finished; LISTEN marker`); err != nil {
		db.Fatal(err)
	}
	return conn
}

// announced returns what was announced before the marker that it sends.
func (db *table) announced(conn *pgx.Conn) map[string]int {
	db.Helper()
	db.Exec(`NOTIFY marker`)
	all := map[string]int{}
	for {
		n, err := conn.WaitForNotification(db.Context())
		if err != nil {
			db.Fatal(err)
		}
		if n.Channel == "marker" {
			return all
		}
		var job struct {
			JobID string `json:"job_id"`
			State string `json:"state"`
		}
		if err := json.Unmarshal([]byte(n.Payload), &job); err != nil {
			db.Fatalf("announcement %q: %v", n.Payload, err)
		}
		all[job.JobID+" "+job.State]++
	}
}
