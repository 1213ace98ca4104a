package requests_test

import (
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"sumepoller/internal/operator"
	"sumepoller/internal/pgtest"
)

func TestStop(t *testing.T) {
	t.Parallel()
	db := newTable(t)
	db.Exec(everyKind)
	finished := db.Strings(`SELECT v::text FROM video_jobs v WHERE state <> 'pending' ORDER BY job_id`)
	got := db.stop("done", "backoff", "leased", "nobody's", "due")
	want := operator.Stopped{
		Mode: "stop", Finished: map[string]int{"stopped": 3}, AlreadyFinished: 1, Unknown: 1, Note: operator.StopNote,
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("answer (-want +got):\n%s", diff)
	}
	if n := pgtest.Value[int](db.DB, `SELECT count(*) FROM video_jobs WHERE state = 'stopped' AND finished_at > now() - interval '1 minute'
		AND leased_until = '-infinity' AND lease_id = '00000000-0000-0000-0000-000000000000'`); n != 3 {
		t.Errorf("%d of 3 rows are stopped and let go", n)
	}
	if diff := cmp.Diff(finished, db.Strings(`SELECT v::text FROM video_jobs v WHERE state NOT IN ('pending', 'stopped') ORDER BY job_id`)); diff != "" {
		t.Errorf("finished rows (-before +after):\n%s", diff)
	}
	sum := db.checksum()
	if again := db.stop("backoff", "leased", "due"); again.Finished["stopped"] != 0 || again.AlreadyFinished != 3 || db.checksum() != sum {
		t.Errorf("asked again it did %+v", again)
	}
	if did := db.backfill(operator.Backfill{JobIDs: []string{"due"}}, time.Second); did.Reopened != 1 {
		t.Errorf("a backfill reopened %d stopped rows, want 1", did.Reopened)
	}
}

func TestStop_Announcement(t *testing.T) {
	t.Parallel()
	db := newTable(t)
	odd := "a \"quoted\" \\ id: \u00e9"
	ids := append(pgtest.Names("job_", 50), odd)
	db.backfill(operator.Backfill{JobIDs: ids}, time.Second)
	conn := db.listen()
	var both sync.WaitGroup
	for range 4 {
		both.Go(func() { db.stop(ids...) })
	}
	both.Wait()
	want := map[string]int{}
	for _, id := range ids {
		want[id+" stopped"] = 1
	}
	if diff := cmp.Diff(want, db.announced(conn)); diff != "" {
		t.Errorf("announcements (-want +got):\n%s", diff)
	}
}
