package postgres_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/jackc/pgx/v5"

	"sumepoller/internal/poller"
	"sumepoller/internal/postgres"
)

// row is what a settle writes.
type row struct {
	State, LastError, SumeStatus, Final string
	Due                                 time.Time
	Polls, Errors, Lost                 int
	Failing, Polled, Finished, Leased   bool
}

func (t table) row(id string) row {
	t.Helper()
	rows, err := t.pool.Query(t.Context(), `
		SELECT state, coalesce(last_error, 'NULL') AS last_error, coalesce(sume_status, 'NULL') AS sume_status,
		       coalesce(final_status::text, 'NULL') AS final,
		       next_poll_at AS due,
		       polls, consecutive_errors AS errors, lost_leases AS lost, failing_since IS NOT NULL AS failing,
		       last_polled_at IS NOT NULL AS polled, finished_at IS NOT NULL AS finished, leased_until > '-infinity' AS leased
		FROM video_jobs WHERE job_id = $1`, id)
	if err != nil {
		t.Fatal(err)
	}
	got, err := pgx.CollectExactlyOneRow(rows, pgx.RowToStructByName[row])
	if err != nil {
		t.Fatalf("row %q: %v", id, err)
	}
	return got
}

func TestSettleWritesWhatAReadCameTo(t *testing.T) {
	t.Parallel()
	db := newTable(t)
	for _, id := range []string{"later", "wordless", "failing", "unreached", "recovered", "completed", "not_found"} {
		db.job(id, time.Minute)
	}
	db.exec(`UPDATE video_jobs SET consecutive_errors = 4, failing_since = now() - interval '1 hour', last_error = 'http_5xx 503'
	         WHERE job_id IN ('failing', 'recovered', 'not_found')`)
	db.exec(`UPDATE video_jobs SET leased_until = now() - interval '1 minute', lease_id = gen_random_uuid() WHERE job_id = 'completed'`)
	s := postgres.NewStore(db.pool)
	r := want(64)
	claim(t, s, r)
	l := r.Lease
	outcomes := settle(t, s,
		later("later", l, 40*time.Second),
		poller.Settlement{JobID: "wordless", Lease: l, Delay: 15 * time.Second, Polled: true},
		poller.Settlement{JobID: "failing", Lease: l, Delay: 4 * time.Minute, Polled: true, Class: poller.HTTP5xx, Error: "http_5xx 502"},
		poller.Settlement{JobID: "unreached", Lease: l, Delay: 15 * time.Second, Class: poller.Timeout, Error: "timeout"},
		later("recovered", l, 15*time.Second),
		finishing("completed", l),
		poller.Settlement{JobID: "not_found", Lease: l, State: poller.StateNotFound, Polled: true, Class: poller.HTTP4xx, Error: "http_4xx 404"},
	)
	if diff := cmp.Diff(make([]poller.Outcome, 7), outcomes); diff != "" {
		t.Errorf("outcomes (-all done +got):\n%s", diff)
	}
	null := "NULL"
	for id, want := range map[string]row{
		"later":     {State: "pending", LastError: null, SumeStatus: "processing", Final: null, Polls: 1, Polled: true},
		"wordless":  {State: "pending", LastError: null, SumeStatus: "", Final: null, Polls: 1, Polled: true},
		"failing":   {State: "pending", LastError: "http_5xx 502", SumeStatus: null, Final: null, Polls: 1, Errors: 5, Failing: true, Polled: true},
		"unreached": {State: "pending", LastError: "timeout", SumeStatus: null, Final: null, Errors: 1, Failing: true},
		"recovered": {State: "pending", LastError: "http_5xx 503", SumeStatus: "processing", Final: null, Polls: 1, Polled: true},
		"completed": {
			State: "completed", LastError: null, SumeStatus: "completed",
			Final: `{"job_id": "completed", "terminal": true, "sume_status": "completed"}`, Polls: 1, Polled: true, Finished: true,
		},
		"not_found": {State: "not_found", LastError: "http_4xx 404", SumeStatus: null, Final: null, Polls: 1, Errors: 5, Failing: true, Polled: true, Finished: true},
	} {
		got := db.row(id)
		got.Due = time.Time{}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", id, diff)
		}
	}
	for id, in := range map[string]float64{"later": 40, "wordless": 15, "failing": 240, "unreached": 15, "recovered": 15, "completed": 60} {
		got := ask[float64](db, `SELECT extract(epoch FROM next_poll_at - now())::double precision FROM video_jobs WHERE job_id = $1`, id)
		if got > in || got < in-15 {
			t.Errorf("%s is due in %.1f s, want %.0f", id, got, in)
		}
	}
}

func TestSettleAskedAgainChangesNothingAndLosesNothing(t *testing.T) {
	t.Parallel()
	db := newTable(t)
	db.due(3)
	s := postgres.NewStore(db.pool)
	r := want(3)
	claim(t, s, r)
	batch := []poller.Settlement{
		finishing("job_1", r.Lease), later("job_2", r.Lease, time.Minute),
		{JobID: "job_3", Lease: r.Lease, Delay: time.Minute, Class: poller.Timeout, Error: "timeout"},
	}
	settle(t, s, batch...)
	before := []row{db.row("job_1"), db.row("job_2"), db.row("job_3")}
	if diff := cmp.Diff([]poller.Outcome{poller.Written, poller.Written, poller.Written}, settle(t, s, batch...)); diff != "" {
		t.Errorf("asked again (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(before, []row{db.row("job_1"), db.row("job_2"), db.row("job_3")}); diff != "" {
		t.Errorf("rows (-before +after):\n%s", diff)
	}
}

// Field case 16.
func TestSettleAfterTheLeaseWentToAnotherChangesNothing(t *testing.T) {
	t.Parallel()
	db := newTable(t)
	db.due(1)
	slow, quick := postgres.NewStore(db.pool), postgres.NewStore(db.pool)
	first, second := want(1), want(1)
	claim(t, slow, first)
	db.exec(`UPDATE video_jobs SET leased_until = now() - interval '1 second'`)
	claim(t, quick, second)
	lost := []poller.Outcome{poller.LeaseLost}
	if diff := cmp.Diff(lost, settle(t, slow, later("job_1", first.Lease, time.Hour))); diff != "" {
		t.Errorf("while the other reads (-want +got):\n%s", diff)
	}
	settle(t, quick, finishing("job_1", second.Lease))
	before := db.row("job_1")
	failed := poller.Settlement{JobID: "job_1", Lease: first.Lease, State: "failed", Polled: true}
	if diff := cmp.Diff(lost, settle(t, slow, failed)); diff != "" {
		t.Errorf("after the other finished (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(before, db.row("job_1")); diff != "" {
		t.Errorf("row (-before +after):\n%s", diff)
	}
}

func TestSettleWithALeaseThatRanOutUntakenIsStillGood(t *testing.T) {
	t.Parallel()
	db := newTable(t)
	db.due(1)
	s := postgres.NewStore(db.pool)
	r := want(1)
	claim(t, s, r)
	db.exec(`UPDATE video_jobs SET leased_until = now() - interval '1 minute'`)
	if got := settle(t, s, finishing("job_1", r.Lease)); got[0] != poller.Written {
		t.Errorf("outcome %v, want done", got)
	}
}

func TestSettleOfARowFinishedOrStoppedByAnotherIsLost(t *testing.T) {
	t.Parallel()
	db := newTable(t)
	db.due(3)
	s := postgres.NewStore(db.pool)
	r := want(3)
	claim(t, s, r)
	db.exec(`UPDATE video_jobs SET state = 'completed' WHERE job_id = 'job_1'`)                           // the older worker
	db.exec(`UPDATE video_jobs SET state = 'stopped', leased_until = '-infinity' WHERE job_id = 'job_2'`) // by hand
	db.exec(`DELETE FROM video_jobs WHERE job_id = 'job_3'`)
	lost := []poller.Outcome{poller.LeaseLost, poller.LeaseLost, poller.Missing, poller.Missing}
	got := settle(t, s, finishing("job_1", r.Lease), finishing("job_2", r.Lease), finishing("job_3", r.Lease), finishing("never", r.Lease))
	if diff := cmp.Diff(lost, got); diff != "" {
		t.Errorf("outcomes (-want +got):\n%s", diff)
	}
	if n := db.number(`SELECT count(*) FROM video_jobs WHERE final_status IS NOT NULL`); n != 0 {
		t.Errorf("%d rows were changed", n)
	}
}

func TestSettleAnnouncesEachFinishedJobOnce(t *testing.T) {
	t.Parallel()
	db := newTable(t)
	db.due(5)
	listener := db.session()
	if _, err := listener.Exec(t.Context(), `LISTEN video_jobs_finished`); err != nil {
		t.Fatal(err)
	}
	s := postgres.NewStore(db.pool)
	r := want(5)
	claim(t, s, r)
	batch := []poller.Settlement{later("job_1", r.Lease, time.Minute)}
	for i := 2; i <= 5; i++ {
		batch = append(batch, finishing(fmt.Sprintf("job_%d", i), r.Lease))
	}
	settle(t, s, batch...)
	settle(t, s, batch...)
	if _, err := db.pool.Exec(t.Context(), `SELECT pg_notify('video_jobs_finished', 'end')`); err != nil {
		t.Fatal(err)
	}
	seen := map[string]int{}
	for {
		n, err := listener.WaitForNotification(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if n.Payload == "end" {
			break
		}
		seen[n.Payload]++
	}
	want := map[string]int{}
	for i := 2; i <= 5; i++ {
		want[fmt.Sprintf(`{"job_id" : "job_%d", "state" : "completed"}`, i)] = 1
	}
	if diff := cmp.Diff(want, seen); diff != "" {
		t.Errorf("announcements (-want +got):\n%s", diff)
	}
}
