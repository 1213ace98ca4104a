package main_test

import (
	"fmt"
	"os"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"sumepoller/internal/operator"
	"sumepoller/internal/poller"
	"sumepoller/internal/sume/sumetest"
)

// finishes is a job that the next read finishes.
var finishes = sumetest.Plan{Flat: true}

func TestPayload_Scheduled(t *testing.T) {
	t.Parallel()
	s := newStage(t)
	b := s.sandbox(t, "POLL_BUDGET=5s")
	for i, payload := range []string{`{}`, ` {} `, `null`, ``, file(t, "scheduled"), file(t, "rule-event"), file(t, "scheduler-event")} {
		s.due(t, finishes, fmt.Sprintf("job_%d", i))
		if got := b.ran(t, payload); got.Mode != poller.ModeScheduled || got.Finished["completed"] != 1 || got.Registered+got.Reopened > 0 {
			t.Errorf("%q: %+v, want a scheduled run that finishes the due job", payload, got)
		}
	}
}

// file returns an example payload.
func file(t *testing.T, name string) string {
	t.Helper()
	payload, err := os.ReadFile("testdata/payloads/" + name + ".json")
	if err != nil {
		t.Fatal(err)
	}
	return string(payload)
}

func TestBackfill_IDs(t *testing.T) {
	t.Parallel()
	s := newStage(t)
	s.mixed(t)
	s.api.AddJob("new_1", finishes)
	s.api.AddJob("new_2", sumetest.Plan{End: "failed"})
	b := s.sandbox(t, "POLL_BUDGET=5s")
	got := b.backfill(t, `{"backfill": {"job_ids": ["new_1", "failed_1", "pending_1", "new_2", "failing_1", "completed_1", "new_1"]}}`, 2, 4)
	if got.Polled != 6 || got.Stopped != poller.StoppedDrained {
		t.Errorf("summary %+v, want 6 reads and then nothing due", got)
	}
	s.ended(t, map[string]int{"pending": 18, "completed": 14, "failed": 10, "not_found": 10, "stopped": 10})
	// A reopened row keeps its polls and finishes again.
	if n := s.number(t, `SELECT polls FROM video_jobs WHERE job_id = 'failed_1' AND state = 'completed' AND finished_at > now() - interval '1 minute'`); n != 6 {
		t.Errorf("polls %d, want the five before and one", n)
	}
}

func TestBackfill_Selection(t *testing.T) {
	t.Parallel()
	const window = `"created_after": "2026-11-01T04:00:00Z", "created_before": "2026-11-01T08:00:00Z"`
	for name, c := range map[string]struct {
		payload string
		want    []string // the rows read
	}{
		"state":                    {`"states": ["stopped"], "created_after": "2026-11-01T10:00:00Z"`, []string{"stopped_10"}},
		"states in a window":       {`"states": ["failed", "not_found"], ` + window, []string{"failed_4", "failed_5", "failed_6", "failed_7", "not_found_4", "not_found_5", "not_found_6", "not_found_7"}},
		"back-off in a window":     {`"overdue": true, ` + window, []string{"failing_4", "failing_5", "failing_6", "failing_7"}},
		"back-off":                 {`"overdue": true, "limit": 3`, []string{"failing_1", "failing_2", "failing_3"}},
		"ids, whatever the window": {`"job_ids": ["failed_1"], ` + window, []string{"failed_1"}},
		"limit":                    {`"states": ["failed", "stopped"], "created_after": "2026-11-01T03:00:00Z", "limit": 3`, []string{"failed_3", "failed_4", "stopped_3"}},
		"no created_at is oldest": {
			`"states": ["failed"], "limit": 4`, []string{"failed_1", "failed_2", "failed_3", "failed_4"},
		},
		"state of no row": {`"states": ["Failed"]`, []string{}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newStage(t)
			s.mixed(t)
			s.sandbox(t, "POLL_BUDGET=5s").backfill(t, `{"backfill": {`+c.payload+`}}`, 0, len(c.want))
			if diff := cmp.Diff(c.want, s.column(t, `SELECT job_id FROM video_jobs WHERE last_polled_at IS NOT NULL ORDER BY job_id`)); diff != "" {
				t.Errorf("read (-want +got):\n%s", diff)
			}
		})
	}
}

func TestBackfill_Rate(t *testing.T) {
	t.Parallel()
	s := newStage(t)
	names := ids("job", 104)
	for _, name := range names {
		s.api.AddJob(name, finishes)
	}
	b := s.sandbox(t, "POLL_BUDGET=3s")
	payload := fmt.Sprintf(`{"backfill": {"job_ids": %s, "reads_per_minute": 2}}`, list(t, names))
	if got := b.backfill(t, payload, 104, 0); got.Polled != 100 {
		t.Errorf("%d reads, want the first hundred", got.Polled)
	}
	const delays = `
SELECT extract(epoch FROM v.next_poll_at - f.next_poll_at)::int::text FROM video_jobs v, video_jobs f
 WHERE v.state = 'pending' AND f.job_id = 'job_0100' ORDER BY v.job_id`
	if diff := cmp.Diff([]string{"0", "30", "60", "90"}, s.column(t, delays)); diff != "" {
		t.Errorf("seconds between the rest (-want +got):\n%s", diff)
	}
	// The same request again moves no row later.
	const due = `SELECT next_poll_at::text FROM video_jobs WHERE job_id >= 'job_0100' ORDER BY job_id`
	before := s.column(t, due)
	b.ran(t, fmt.Sprintf(`{"backfill": {"job_ids": %s, "reads_per_minute": 1}}`, list(t, names)))
	if diff := cmp.Diff(before, s.column(t, due)); diff != "" {
		t.Errorf("due times after the same request at a lower rate (-before +after):\n%s", diff)
	}
}

func TestStop_ThenBackfill(t *testing.T) {
	t.Parallel()
	s := newStage(t)
	s.mixed(t)
	heard := s.announcements(t)
	b := s.sandbox(t, "POLL_BUDGET=3s", "SUME_API_KEY_SECRET_ID=sume/missing")
	const payload = `{"stop": {"job_ids": ["pending_1", "failing_1", "completed_1", "job_9"]}}`
	for again, want := range []operator.Stopped{
		{Finished: map[string]int{"stopped": 2}, AlreadyFinished: 1, Unknown: 1},
		{Finished: map[string]int{"stopped": 0}, AlreadyFinished: 3, Unknown: 1},
	} {
		got := askFor[operator.Stopped](t, b, payload)
		if got.RunID == "" {
			t.Error("no run_id")
		}
		want.RunID, want.Mode, want.Note = got.RunID, operator.ModeStop, operator.StopNote
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("answer %d (-want +got):\n%s", again, diff)
		}
	}
	want := map[string]int{`{"job_id" : "pending_1", "state" : "stopped"}`: 1, `{"job_id" : "failing_1", "state" : "stopped"}`: 1}
	if diff := cmp.Diff(want, heard()); diff != "" {
		t.Errorf("announcements (-want +got):\n%s", diff)
	}
	s.ended(t, map[string]int{"pending": 18, "completed": 10, "failed": 10, "not_found": 10, "stopped": 12})
	s.sandbox(t, "POLL_BUDGET=3s").backfill(t, `{"backfill": {"states": ["stopped"]}}`, 0, 12)
	s.ended(t, map[string]int{"pending": 18, "completed": 22, "failed": 10, "not_found": 10})
}

func TestInspect_Answer(t *testing.T) {
	t.Parallel()
	s := newStage(t)
	s.mixed(t)
	s.exec(t, `UPDATE video_jobs SET next_poll_at = now() - interval '1 minute' WHERE job_id IN ('pending_1', 'pending_2')`)
	s.exec(t, `UPDATE video_jobs SET leased_until = now() + interval '1 minute' WHERE job_id = 'pending_2'`)
	s.exec(t, `INSERT INTO read_budget (day, reads) VALUES ((now() AT TIME ZONE 'UTC')::date, 30)`)
	b := s.sandbox(t, "SUME_READS_PER_DAY=100", "SUME_API_KEY_SECRET_ID=sume/missing")
	before := s.checksum(t)
	got := askFor[operator.Inspection](t, b, `{"inspect": {"limit": 3, "job_ids": ["completed_1", "job_9", "pending_2"]}}`)
	states := map[string]int{"pending": 20, "completed": 10, "failed": 10, "not_found": 10, "stopped": 10}
	if diff := cmp.Diff(states, got.States); diff != "" || !got.StatesExact {
		t.Errorf("states exact: %v (-want +got):\n%s", got.StatesExact, diff)
	}
	if got.Mode != operator.ModeInspect || got.RunID == "" || time.Since(got.At).Abs() > time.Minute {
		t.Errorf("mode %q, run %q, at %v", got.Mode, got.RunID, got.At)
	}
	if got.Due != 1 || got.OldestDueSeconds < 60 || got.Leased != 1 || got.FailingTotal != 10 || len(got.Failing) != 3 ||
		got.ReadsToday != 30 || got.ReadsLeft == nil || *got.ReadsLeft != 70 {
		t.Errorf("answer %+v", got)
	}
	if len(got.Jobs) != 2 || got.Jobs[0].JobID != "completed_1" || got.Jobs[1].LeasedUntil == nil || !cmp.Equal(got.Unknown, []string{"job_9"}) {
		t.Errorf("jobs %+v, unknown %q", got.Jobs, got.Unknown)
	}
	if got := askFor[operator.Inspection](t, b, `{"inspect": {}}`); got.Jobs != nil || got.Unknown != nil || len(got.Failing) != 10 {
		t.Errorf("without job_ids: %+v", got)
	}
	if diff := cmp.Diff(before, s.checksum(t)); diff != "" {
		t.Errorf("tables (-before +after):\n%s", diff)
	}
}
