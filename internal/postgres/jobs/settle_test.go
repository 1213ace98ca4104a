package jobs_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/jackc/pgx/v5"

	"sumepoller/internal/pgtest"
	"sumepoller/internal/poller"
	"sumepoller/internal/postgres/jobs"
)

// row is what a settle writes.
type row struct {
	State, LastError, SumeStatus, Final string
	Due                                 time.Time
	Polls, Errors, Lost                 int
	Failing, Polled, Finished, Leased   bool
}

func readRow(db *pgtest.DB, id string) row {
	db.Helper()
	rows, err := db.Pool.Query(db.Context(), `
		SELECT state, coalesce(last_error, 'NULL') AS last_error, coalesce(sume_status, 'NULL') AS sume_status,
		       coalesce(final_status::text, 'NULL') AS final,
		       next_poll_at AS due,
		       polls, consecutive_errors AS errors, lost_leases AS lost, failing_since IS NOT NULL AS failing,
		       last_polled_at IS NOT NULL AS polled, finished_at IS NOT NULL AS finished, leased_until > '-infinity' AS leased
		FROM video_jobs WHERE job_id = $1`, id)
	if err != nil {
		db.Fatal(err)
	}
	got, err := pgx.CollectExactlyOneRow(rows, pgx.RowToStructByName[row])
	if err != nil {
		db.Fatalf("row %q: %v", id, err)
	}
	return got
}

func TestSettle(t *testing.T) {
	t.Parallel()
	db := pgtest.New(t)
	for _, id := range []string{"later", "wordless", "failing", "unreached", "recovered", "completed", "not_found"} {
		db.Insert(id, time.Minute)
	}
	db.Exec(`UPDATE video_jobs SET consecutive_errors = 4, failing_since = now() - interval '1 hour', last_error = 'http_5xx 503'
	         WHERE job_id IN ('failing', 'recovered', 'not_found')`)
	db.Exec(`UPDATE video_jobs SET leased_until = now() - interval '1 minute', lease_id = gen_random_uuid() WHERE job_id = 'completed'`)
	s := jobs.New(db.Pool)
	r := uncounted(64)
	claim(t, s, r)
	l := r.Lease
	outcomes := settle(t, s,
		reschedule("later", l, 40*time.Second),
		poller.Settlement{JobID: "wordless", Lease: l, Delay: 15 * time.Second, Polled: true},
		poller.Settlement{JobID: "failing", Lease: l, Delay: 4 * time.Minute, Polled: true, Class: poller.HTTP5xx, Error: "http_5xx 502"},
		poller.Settlement{JobID: "unreached", Lease: l, Delay: 15 * time.Second, Class: poller.Timeout, Error: "timeout"},
		reschedule("recovered", l, 15*time.Second),
		finish("completed", l),
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
		got := readRow(db, id)
		got.Due = time.Time{}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", id, diff)
		}
	}
	for id, in := range map[string]float64{"later": 40, "wordless": 15, "failing": 240, "unreached": 15, "recovered": 15, "completed": 60} {
		got := pgtest.Value[float64](db, `SELECT extract(epoch FROM next_poll_at - now())::double precision FROM video_jobs WHERE job_id = $1`, id)
		if got > in || got < in-15 {
			t.Errorf("%s is due in %.1f s, want %.0f", id, got, in)
		}
	}
}

func TestSettle_AskedAgain(t *testing.T) {
	t.Parallel()
	db := pgtest.New(t)
	db.InsertDue(3)
	s := jobs.New(db.Pool)
	r := uncounted(3)
	claim(t, s, r)
	batch := []poller.Settlement{
		finish("job_1", r.Lease), reschedule("job_2", r.Lease, time.Minute),
		{JobID: "job_3", Lease: r.Lease, Delay: time.Minute, Class: poller.Timeout, Error: "timeout"},
	}
	settle(t, s, batch...)
	before := []row{readRow(db, "job_1"), readRow(db, "job_2"), readRow(db, "job_3")}
	if diff := cmp.Diff([]poller.Outcome{poller.Written, poller.Written, poller.Written}, settle(t, s, batch...)); diff != "" {
		t.Errorf("asked again (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(before, []row{readRow(db, "job_1"), readRow(db, "job_2"), readRow(db, "job_3")}); diff != "" {
		t.Errorf("rows (-before +after):\n%s", diff)
	}
}

// A slow run must not overwrite what the next one wrote.
func TestSettle_LeaseLost(t *testing.T) {
	t.Parallel()
	db := pgtest.New(t)
	db.InsertDue(1)
	slow, quick := jobs.New(db.Pool), jobs.New(db.Pool)
	first, second := uncounted(1), uncounted(1)
	claim(t, slow, first)
	db.Exec(`UPDATE video_jobs SET leased_until = now() - interval '1 second'`)
	claim(t, quick, second)
	lost := []poller.Outcome{poller.LeaseLost}
	if diff := cmp.Diff(lost, settle(t, slow, reschedule("job_1", first.Lease, time.Hour))); diff != "" {
		t.Errorf("while the other reads (-want +got):\n%s", diff)
	}
	settle(t, quick, finish("job_1", second.Lease))
	before := readRow(db, "job_1")
	failed := poller.Settlement{JobID: "job_1", Lease: first.Lease, State: "failed", Polled: true}
	if diff := cmp.Diff(lost, settle(t, slow, failed)); diff != "" {
		t.Errorf("after the other finished (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(before, readRow(db, "job_1")); diff != "" {
		t.Errorf("row (-before +after):\n%s", diff)
	}
}

func TestSettle_LeaseExpired(t *testing.T) {
	t.Parallel()
	db := pgtest.New(t)
	db.InsertDue(1)
	s := jobs.New(db.Pool)
	r := uncounted(1)
	claim(t, s, r)
	db.Exec(`UPDATE video_jobs SET leased_until = now() - interval '1 minute'`)
	if got := settle(t, s, finish("job_1", r.Lease)); got[0] != poller.Written {
		t.Errorf("outcome %v, want Written", got)
	}
}

func TestSettle_FinishedMeanwhile(t *testing.T) {
	t.Parallel()
	db := pgtest.New(t)
	db.InsertDue(3)
	s := jobs.New(db.Pool)
	r := uncounted(3)
	claim(t, s, r)
	db.Exec(`UPDATE video_jobs SET state = 'completed' WHERE job_id = 'job_1'`)                           // the older worker
	db.Exec(`UPDATE video_jobs SET state = 'stopped', leased_until = '-infinity' WHERE job_id = 'job_2'`) // by hand
	db.Exec(`DELETE FROM video_jobs WHERE job_id = 'job_3'`)
	lost := []poller.Outcome{poller.LeaseLost, poller.LeaseLost, poller.Missing, poller.Missing}
	got := settle(t, s, finish("job_1", r.Lease), finish("job_2", r.Lease), finish("job_3", r.Lease), finish("never", r.Lease))
	if diff := cmp.Diff(lost, got); diff != "" {
		t.Errorf("outcomes (-want +got):\n%s", diff)
	}
	if n := db.Number(`SELECT count(*) FROM video_jobs WHERE final_status IS NOT NULL`); n != 0 {
		t.Errorf("%d rows were changed", n)
	}
}

func TestSettle_Announcement(t *testing.T) {
	t.Parallel()
	db := pgtest.New(t)
	db.InsertDue(5)
	listener := db.Connect()
	if _, err := listener.Exec(t.Context(), `LISTEN video_jobs_finished`); err != nil {
		t.Fatal(err)
	}
	s := jobs.New(db.Pool)
	r := uncounted(5)
	claim(t, s, r)
	batch := []poller.Settlement{reschedule("job_1", r.Lease, time.Minute)}
	for i := 2; i <= 5; i++ {
		batch = append(batch, finish(fmt.Sprintf("job_%d", i), r.Lease))
	}
	settle(t, s, batch...)
	settle(t, s, batch...)
	if _, err := db.Pool.Exec(t.Context(), `SELECT pg_notify('video_jobs_finished', 'end')`); err != nil {
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
