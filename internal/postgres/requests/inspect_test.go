package requests_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"sumepoller/internal/operator"
	"sumepoller/internal/postgres/requests"
)

func (db *table) inspect(q operator.Inspect, perDay int) operator.Inspection {
	db.Helper()
	seen, err := db.Inspect(db.Context(), q, perDay)
	if err != nil {
		db.Fatalf("Inspect: %v", err)
	}
	return seen
}

func TestInspect(t *testing.T) {
	t.Parallel()
	db := newTable(t)
	db.Exec(everyKind)
	db.Exec(`INSERT INTO read_budget (day, reads) VALUES ((now() AT TIME ZONE 'UTC')::date, 70), ((now() AT TIME ZONE 'UTC')::date - 1, 9000)`)
	db.Exec(`INSERT INTO video_submissions (idempotency_key, request, state, last_error, created_at) VALUES
		('order-1', '{}', 'sending', 'http_5xx 503', now() - interval '11 minutes'), ('order-2', '{}', 'sending', NULL, now()),
		('order-3', '{}', 'accepted', NULL, now()), ('order-4', '{}', 'rejected', '402', now())`)
	db.Exec(`INSERT INTO video_submissions (idempotency_key, request, state, job_id, last_error) VALUES ('order-5', '{}', 'unrecorded', 'job_5', 'SQLSTATE 23502')`)
	before := db.checksum()
	got := db.inspect(operator.Inspect{}, 100)

	if diff := cmp.Diff(map[string]int{"pending": 4, "failed": 3, "completed": 1}, got.States); diff != "" || !got.StatesExact {
		t.Errorf("states, exact %v (-want +got):\n%s", got.StatesExact, diff)
	}
	figures := fmt.Sprint(got.Mode, got.Due, got.Leased, got.FailingTotal, got.ReadsToday, *got.ReadsLeft, got.SubmissionsTotal, got.SubmissionsStuck)
	if want := fmt.Sprint("inspect", 1, 1, 2, 70, 30, 3, 2); figures != want {
		t.Errorf("mode, due, leased, failing, reads today and left, submissions, stuck = %s, want %s", figures, want)
	}
	if got.OldestDueSeconds < 3600 || got.OldestDueSeconds > 3700 {
		t.Errorf("oldest due for %v s, want an hour", got.OldestDueSeconds)
	}
	if len(got.Failing) != 2 || got.Failing[0].JobID != "backoff" || got.Failing[0].LastError != "http_5xx 503" || got.Failing[0].ConsecutiveErrors != 5 {
		t.Errorf("failing jobs %+v, want backoff and leased", got.Failing)
	}
	if len(got.Submissions) != 3 || got.Submissions[0].IdempotencyKey != "order-1" || got.Submissions[0].AgeSeconds < 660 || got.Submissions[0].State != "sending" {
		t.Errorf("submissions %+v, want order-1, order-2 and order-5", got.Submissions)
	}
	for _, sub := range got.Submissions {
		if unrecorded := sub.State == "unrecorded"; unrecorded != (sub.JobID != nil && *sub.JobID == "job_5") {
			t.Errorf("submission %+v, want order-5 unrecorded with job_5", sub)
		}
	}
	if got.Jobs != nil || got.Unknown != nil {
		t.Errorf("shows rows nobody asked for: %v, %v", got.Jobs, got.Unknown)
	}
	if db.checksum() != before {
		t.Error("an inspect changed rows")
	}
}

func TestInspect_JobIDs(t *testing.T) {
	t.Parallel()
	db := newTable(t)
	db.Exec(everyKind)
	db.Exec(`UPDATE video_jobs SET next_poll_at = 'infinity' WHERE job_id = 'later'`)
	got := db.inspect(operator.Inspect{JobIDs: []string{"nobody's", "leased", "adopted", "later"}, Limit: 1}, 0)
	if got.ReadsLeft != nil {
		t.Errorf("reads left %d where there is no limit", *got.ReadsLeft)
	}
	if len(got.Failing) != 1 || got.FailingTotal != 2 {
		t.Errorf("%d of %d failing jobs, want 1 of 2", len(got.Failing), got.FailingTotal)
	}
	if diff := cmp.Diff([]string{"nobody's"}, got.Unknown); diff != "" {
		t.Errorf("unknown ids (-want +got):\n%s", diff)
	}
	if len(got.Jobs) != 3 {
		t.Fatalf("%d rows, want 3", len(got.Jobs))
	}
	adopted, later, leased := got.Jobs[0], got.Jobs[1], got.Jobs[2]
	if adopted.JobID != "adopted" || adopted.State != "failed" || adopted.CreatedAt != nil || adopted.LeasedUntil != nil {
		t.Errorf("adopted row %+v", adopted)
	}
	if leased.JobID != "leased" || leased.LeasedUntil == nil || leased.LostLeases != 1 || *leased.LastError != "timeout" {
		t.Errorf("leased row %+v", leased)
	}
	if later.NextPollAt != nil || later.Polls != 2 {
		t.Errorf("row that is never due %+v", later)
	}
}

// A row that cannot be claimed is due for longer and longer, and one that never
// ends is read for ever: nothing else shows either.
func TestInspect_DueAndLongRunning(t *testing.T) {
	t.Parallel()
	db := newTable(t)
	db.Exec(`INSERT INTO video_jobs (job_id, state, next_poll_at, created_at, leased_until, lost_leases, polls, sume_status, last_polled_at) VALUES
		('stuck',    'pending',   now() - interval '2 hours',  now() - interval '3 hours',  '-infinity',                   0, 0, NULL, NULL),
		('killer',   'pending',   now() - interval '1 hour',   now() - interval '3 hours',  now() + interval '5 minutes', 4, 0, NULL, NULL),
		('due',      'pending',   now() - interval '1 second', now() - interval '3 hours',  '-infinity',                   0, 3, 'queued', now() - interval '1 minute'),
		('endless',  'pending',   now() + interval '1 hour',   now() - interval '45 days',  '-infinity',                   0, 9000, 'processing', now()),
		('long',     'pending',   now() + interval '1 hour',   now() - interval '25 hours', '-infinity',                   0, 90, 'processing', now()),
		('young',    'pending',   now() + interval '1 hour',   now() - interval '23 hours', '-infinity',                   0, 80, 'processing', now()),
		('adopted',  'pending',   now() + interval '1 hour',   NULL,                        '-infinity',                   0, 80, 'processing', now()),
		('finished', 'completed', now() - interval '3 hours',  now() - interval '50 days',  '-infinity',                   0, 7, 'completed', now())`)
	got := db.inspect(operator.Inspect{}, 0)
	var due, long []string
	for _, j := range got.OldestDue {
		due = append(due, fmt.Sprint(j.JobID, " ", j.DueSeconds/60, " ", j.LostLeases, " ", j.LeasedUntil != nil, " ", j.LastPolledAt != nil))
	}
	for _, j := range got.LongRunning {
		long = append(long, fmt.Sprint(j.JobID, " ", j.AgeSeconds/3600, " ", j.CreatedAt != nil, " ", j.Polls, " ", *j.SumeStatus, " ", j.NextPollAt != nil))
	}
	if diff := cmp.Diff([]string{"stuck 120 0 false false", "killer 60 4 true false", "due 0 0 false true"}, due); diff != "" {
		t.Errorf("oldest due (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]string{"endless 1080 true 9000 processing true", "long 25 true 90 processing true"}, long); diff != "" || got.LongRunningTotal != 2 {
		t.Errorf("long-running, %d (-want +got):\n%s", got.LongRunningTotal, diff)
	}
	if got := db.inspect(operator.Inspect{Limit: 1}, 0); len(got.OldestDue) != 1 || len(got.LongRunning) != 1 || got.LongRunningTotal != 2 {
		t.Errorf("with a limit of 1: %+v, %+v of %d", got.OldestDue, got.LongRunning, got.LongRunningTotal)
	}
}

func TestInspect_EmptyTable(t *testing.T) {
	t.Parallel()
	db := newTable(t)
	b, err := json.Marshal(db.inspect(operator.Inspect{}, 0))
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{`"states":{}`, `"failing":[]`, `"submissions":[]`, `"oldest_due":[]`, `"long_running":[]`, `"long_running_total":0`, `"reads_left":null`, `"oldest_due_seconds":0,`} {
		if !strings.Contains(string(b), want) {
			t.Errorf("answer %s, want %s in it", b, want)
		}
	}
}

func TestInspect_ManyRows(t *testing.T) {
	t.Parallel()
	db := newTable(t)
	db.Exec(`INSERT INTO video_jobs (job_id, next_poll_at, created_at, failing_since, last_error, final_status, idempotency_key)
		SELECT 'job_' || i, now() - i * interval '1 ms', now() - interval '1 day' - i * interval '1 s', now() - i * interval '1 s', 'http_5xx 503 at https://signed.example/v?sig=' || i,
		       jsonb_build_object('url', 'https://signed.example/final?sig=' || i), 'secret-order-' || i FROM generate_series(1, 100000) i`)
	db.Exec(`INSERT INTO video_submissions (idempotency_key, request, state, last_error)
		VALUES ('order-1', '{"prompt": "secret-prompt"}', 'sending', 'see HTTPS://signed.example/x')`)
	ids := make([]string, operator.MaxInspectRows)
	for i := range ids {
		ids[i] = fmt.Sprintf("job_%d", i+1)
	}
	var got operator.Inspection
	pool := db.OneConnection()
	db.Table = requests.New(pool)
	blocks := db.Blocks(pool, func() { got = db.inspect(operator.Inspect{JobIDs: ids, Limit: 1_000_000}, 10_000) })
	t.Logf("%d blocks", blocks)
	if blocks > 100_000 { // one a row: a few scans, nothing looked up for each
		t.Errorf("touched %d blocks, want at most 100000", blocks)
	}
	if got.Due != 100_000 || got.States["pending"] != 100_000 || got.FailingTotal != 100_000 {
		t.Errorf("due %d, pending %d, failing %d, want 100000 each", got.Due, got.States["pending"], got.FailingTotal)
	}
	for name, c := range map[string]struct {
		rows  int
		first string
	}{
		"oldest due":   {len(got.OldestDue), got.OldestDue[0].JobID},
		"long-running": {len(got.LongRunning), got.LongRunning[0].JobID},
	} {
		if c.rows != operator.MaxInspectListed || c.first != "job_100000" || got.LongRunningTotal != 100_000 {
			t.Errorf("%s: %d rows from %s on of %d, want %d from job_100000 on", name, c.rows, c.first, got.LongRunningTotal, operator.MaxInspectListed)
		}
	}
	if len(got.Failing) != operator.MaxInspectRows || got.Failing[0].JobID != "job_100000" {
		t.Errorf("%d failing jobs from %s on, want %d from job_100000 on", len(got.Failing), got.Failing[0].JobID, operator.MaxInspectRows)
	}
	b, err := json.Marshal(got)
	if err != nil {
		t.Fatal(err)
	}
	if len(b) > 6_000_000 {
		t.Errorf("an answer of %d bytes, Lambda takes 6 MB", len(b))
	}
	for _, never := range []string{"signed.example", "://", "secret-", "final_status"} {
		if strings.Contains(string(b), never) {
			t.Errorf("the answer holds %q", never)
		}
	}
}
