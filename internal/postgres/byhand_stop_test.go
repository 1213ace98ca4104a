package postgres_test

import (
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"sumepoller/internal/operator"
)

func TestStopEndsPendingRowsAndNoOthers(t *testing.T) {
	t.Parallel()
	h := newHand(t)
	h.exec(everyKind)
	finished := h.lines(`SELECT v::text FROM video_jobs v WHERE state <> 'pending' ORDER BY job_id`)
	got := h.stop("done", "backoff", "leased", "nobody's", "due")
	want := operator.Stopped{
		Mode: "stop", Finished: map[string]int{"stopped": 3}, AlreadyFinished: 1, Unknown: 1, Note: operator.StopNote,
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
	if did := h.backfill(operator.Backfill{JobIDs: []string{"due"}}, time.Second); did.Reopened != 1 {
		t.Errorf("a backfill reopened %d stopped rows, want 1", did.Reopened)
	}
}

func TestStopAnnouncesEachJobOnceToAListener(t *testing.T) {
	t.Parallel()
	h := newHand(t)
	odd := "a \"quoted\" \\ id: \u00e9"
	ids := append(names("job_", 50), odd)
	h.backfill(operator.Backfill{JobIDs: ids}, time.Second)
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
