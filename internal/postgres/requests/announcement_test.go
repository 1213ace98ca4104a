package requests_test

import (
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"sumepoller/internal/operator"
	"sumepoller/internal/pgtest"
	"sumepoller/internal/poller"
	"sumepoller/internal/postgres/jobs"
)

// lease claims all that is due under one lease.
func (db *table) lease(mark byte) ([]poller.Job, poller.LeaseID) {
	db.Helper()
	id := poller.LeaseID{mark}
	got, err := jobs.New(db.Pool).Claim(db.Context(), poller.ClaimRequest{Lease: id, Limit: 1000, For: time.Minute, PaceLine: -1})
	if err != nil {
		db.Fatalf("Claim: %v", err)
	}
	return got.Jobs, id
}

// settle repeats while another program locks a row, as a run does.
func (db *table) settle(batch []poller.Settlement) []poller.Outcome {
	db.Helper()
	for {
		results, err := jobs.New(db.Pool).Settle(db.Context(), batch)
		got := make([]poller.Outcome, len(results))
		for i, r := range results {
			got[i] = r.Outcome
		}
		if err != nil {
			db.Errorf("Settle: %v", err)
		}
		if err != nil || !slices.Contains(got, poller.Locked) {
			return got
		}
	}
}

func finishAll(jobs []poller.Job, lease poller.LeaseID) []poller.Settlement {
	batch := make([]poller.Settlement, len(jobs))
	for i, j := range jobs {
		batch[i] = poller.Settlement{JobID: j.ID, Lease: lease, State: "completed", Polled: true, Status: "completed", Final: []byte(`{}`)}
	}
	return batch
}

// gate makes each commit that finishes such a job wait until the test opens it.
func (db *table) gate(job string) (open func()) {
	db.Helper()
	db.Exec(`CREATE FUNCTION gate() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN PERFORM pg_advisory_xact_lock_shared(7); RETURN NULL; END';
		CREATE CONSTRAINT TRIGGER gate AFTER UPDATE ON video_jobs DEFERRABLE INITIALLY DEFERRED FOR EACH ROW
		WHEN (NEW.finished_at IS NOT NULL AND NEW.job_id LIKE '` + job + `') EXECUTE FUNCTION gate()`)
	tx, err := db.Pool.Begin(db.Context())
	if err != nil {
		db.Fatal(err)
	}
	if _, err := tx.Exec(db.Context(), `SELECT pg_advisory_xact_lock(7)`); err != nil {
		db.Fatal(err)
	}
	return func() {
		if err := tx.Rollback(db.Context()); err != nil {
			db.Error(err)
		}
	}
}

func TestAnnouncement_Once(t *testing.T) {
	t.Parallel()
	once := map[string]int{}
	for _, id := range pgtest.Names("job_", 50) {
		once[id+" completed"] = 1
	}

	t.Run("settled concurrently and repeated", func(t *testing.T) {
		t.Parallel()
		db := newTable(t)
		db.backfill(operator.Backfill{JobIDs: pgtest.Names("job_", 50)}, time.Second)
		jobs, lease := db.lease(1)
		conn := db.listen()
		var both sync.WaitGroup
		for range 4 {
			both.Go(func() { db.settle(finishAll(jobs, lease)) })
		}
		both.Wait()
		db.settle(finishAll(jobs, lease)) // as after an answer that was lost
		if diff := cmp.Diff(once, db.announced(conn)); diff != "" {
			t.Errorf("announcements (-want +got):\n%s", diff)
		}
	})
	t.Run("connection cut before the commit", func(t *testing.T) {
		t.Parallel()
		db := newTable(t)
		db.backfill(operator.Backfill{JobIDs: pgtest.Names("job_", 50)}, time.Second)
		jobs, lease := db.lease(1)
		conn := db.listen()
		open := db.gate("%")
		done := make(chan []poller.Outcome, 1)
		go func() { done <- db.settle(finishAll(jobs, lease)) }()
		db.AwaitLockWaits(1)
		if n := pgtest.Value[int](db.DB, `SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity
			WHERE datname = current_database() AND wait_event_type = 'Lock'`); n != 1 {
			t.Fatalf("cut %d connections, want 1", n)
		}
		if got := db.announced(conn); len(got) != 0 {
			t.Errorf("heard %v of a transaction that never committed", got)
		}
		open()
		for i, got := range <-done {
			if got != poller.Written {
				t.Errorf("%s came out %v", jobs[i].ID, got)
			}
		}
		if diff := cmp.Diff(once, db.announced(conn)); diff != "" {
			t.Errorf("announcements (-want +got):\n%s", diff)
		}
	})
	t.Run("stopped while it is read", func(t *testing.T) {
		t.Parallel()
		db := newTable(t)
		db.backfill(operator.Backfill{JobIDs: []string{"job_1", "job_2"}}, time.Second)
		jobs, lease := db.lease(1)
		conn := db.listen()
		db.stop("job_1")
		db.backfill(operator.Backfill{JobIDs: []string{"job_1"}}, time.Second)
		for i, got := range db.settle(finishAll(jobs, lease)) {
			want := poller.Written
			if jobs[i].ID == "job_1" {
				want = poller.LeaseLost
			}
			if got != want {
				t.Errorf("%s came out %v, want %v", jobs[i].ID, got, want)
			}
		}
		if diff := cmp.Diff(map[string]int{"job_1 stopped": 1, "job_2 completed": 1}, db.announced(conn)); diff != "" {
			t.Errorf("announcements (-want +got):\n%s", diff)
		}
	})
}

func TestAnnouncement_AfterCommit(t *testing.T) {
	t.Parallel()
	cases := map[string]func(db *table){
		"completed": func(db *table) { jobs, lease := db.lease(1); db.settle(finishAll(jobs, lease)) },
		"stopped":   func(db *table) { db.stop("job_1") },
	}
	for state, finish := range cases {
		t.Run(state, func(t *testing.T) {
			t.Parallel()
			db := newTable(t)
			db.backfill(operator.Backfill{JobIDs: []string{"job_1"}}, time.Second)
			conn := db.listen()
			open := db.gate("%")
			done := make(chan struct{})
			go func() { finish(db); close(done) }()
			db.AwaitLockWaits(1)
			if got := db.announced(conn); len(got) != 0 {
				t.Errorf("heard %v before the commit", got)
			}
			open()
			<-done
			if diff := cmp.Diff(map[string]int{"job_1 " + state: 1}, db.announced(conn)); diff != "" {
				t.Errorf("announcements (-want +got):\n%s", diff)
			}
		})
	}
}

// catchUp is the query that the documentation gives to those who were away.
const catchUp = `
SELECT job_id || ' ' || state FROM video_jobs
WHERE finished_at > $1::timestamptz - interval '1 minute'
ORDER BY finished_at, job_id`

func TestAnnouncement_CatchUp(t *testing.T) {
	t.Parallel()
	db := newTable(t)
	db.backfill(operator.Backfill{JobIDs: []string{"first", "second"}}, time.Second)
	jobs, lease := db.lease(1)
	batch := finishAll(jobs, lease)
	open := db.gate("first")
	done := make(chan struct{})
	settle := func(id string) {
		for _, s := range batch {
			if s.JobID == id {
				db.settle([]poller.Settlement{s})
			}
		}
	}
	go func() { settle("first"); close(done) }()
	db.AwaitLockWaits(1)
	settle("second")
	// A reader that has seen all there is to see, up to the second's time.
	last := pgtest.Value[time.Time](db.DB, `SELECT max(finished_at) FROM video_jobs`)
	open()
	<-done
	got := db.Strings(catchUp, last)
	slices.Sort(got)
	if fmt.Sprint(got) != "[first completed second completed]" {
		t.Errorf("catch-up found %v, want both", got)
	}
}
