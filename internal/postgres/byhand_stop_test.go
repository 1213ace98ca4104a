package postgres_test

import (
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"sumepoller/internal/poller"
)

func TestStopEndsPendingRowsAndNoOthers(t *testing.T) {
	t.Parallel()
	h := newHand(t)
	h.exec(everyKind)
	finished := h.lines(`SELECT v::text FROM video_jobs v WHERE state <> 'pending' ORDER BY job_id`)
	got := h.stop("done", "backoff", "leased", "nobody's", "due")
	want := poller.Stopped{
		Mode: "stop", Finished: map[string]int{"stopped": 3}, AlreadyFinished: 1, Unknown: 1, Note: poller.StopNote,
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("answer (-want +got):\n%s", diff)
	}
	if n := value[int](h, `SELECT count(*) FROM video_jobs WHERE state = 'stopped' AND finished_at > now() - interval '1 minute'
		AND leased_until = '-infinity' AND lease_id = '00000000-0000-0000-0000-000000000000'`); n != 3 {
		t.Errorf("%d of 3 rows are stopped and let go", n)
	}
	if diff := cmp.Diff(finished, h.lines(`SELECT v::text FROM video_jobs v WHERE state NOT IN ('pending', 'stopped') ORDER BY job_id`)); diff != "" {
		t.Errorf("finished rows (-before +after):\n%s", diff)
	}
	sum := h.checksum()
	if again := h.stop("backoff", "leased", "due"); again.Finished["stopped"] != 0 || again.AlreadyFinished != 3 || h.checksum() != sum {
		t.Errorf("asked again it did %+v", again)
	}
	if did := h.backfill(poller.Backfill{JobIDs: []string{"due"}}, time.Second); did.Reopened != 1 {
		t.Errorf("a backfill reopened %d stopped rows, want 1", did.Reopened)
	}
}

func TestStopAnnouncesEachJobOnceToAListener(t *testing.T) {
	t.Parallel()
	h := newHand(t)
	odd := "a \"quoted\" \\ id: \u00e9"
	ids := append(names("job_", 50), odd)
	h.backfill(poller.Backfill{JobIDs: ids}, time.Second)
	conn := h.listen()
	var twins sync.WaitGroup
	for range 4 {
		twins.Go(func() { h.stop(ids...) })
	}
	twins.Wait()
	want := map[string]int{}
	for _, id := range ids {
		want[id+" stopped"] = 1
	}
	if diff := cmp.Diff(want, h.heard(conn)); diff != "" {
		t.Errorf("announcements (-want +got):\n%s", diff)
	}
}

func TestStopAnnouncesNothingBeforeItsCommit(t *testing.T) {
	t.Parallel()
	h := newHand(t)
	h.backfill(poller.Backfill{JobIDs: []string{"job_1"}}, time.Second)
	// A deferred trigger of the user's holds the commit up until the test
	// lets go of a lock.
	h.exec(`CREATE FUNCTION gate() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN PERFORM pg_advisory_xact_lock(7); RETURN NULL; END';
		CREATE CONSTRAINT TRIGGER gate AFTER UPDATE ON video_jobs DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION gate()`)
	conn := h.listen()
	tx, err := h.pool.Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := tx.Exec(t.Context(), `SELECT pg_advisory_xact_lock(7)`); err != nil {
		t.Fatal(err)
	}
	done := make(chan poller.Stopped, 1)
	go func() { done <- h.stop("job_1") }()
	h.waiting(1)
	if got := h.heard(conn); len(got) != 0 {
		t.Errorf("heard %v before the commit", got)
	}
	if err := tx.Rollback(t.Context()); err != nil {
		t.Fatal(err)
	}
	<-done
	if diff := cmp.Diff(map[string]int{"job_1 stopped": 1}, h.heard(conn)); diff != "" {
		t.Errorf("announcements (-want +got):\n%s", diff)
	}
}
