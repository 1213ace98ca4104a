package cli_test

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"sumepoller/internal/cli"
	"sumepoller/internal/operator"
	"sumepoller/internal/poller"
)

func ptr[T any](v T) *T { return &v }

var now = time.Date(2026, 11, 2, 12, 0, 0, 0, time.UTC)

func in(d time.Duration) *time.Time { return ptr(now.Add(d)) }

func TestPrint_Inspect(t *testing.T) {
	t.Parallel()
	cases := map[string]operator.Inspection{
		"empty": {At: now, States: map[string]int{}, StatesExact: true},
		"busy": {
			At: now, States: map[string]int{"pending": 4, "failed": 7, "completed": 1200}, StatesExact: true,
			PendingJobs: operator.PendingJobs{
				Due: 1, OldestDueSeconds: 3725, Leased: 2, FailingTotal: 40,
				Failing: []operator.FailingJob{
					{JobID: "job_1", FailingSince: in(-26 * time.Hour), ConsecutiveErrors: 12, LastError: "http_5xx 503", NextPollAt: in(15 * time.Minute)},
					{JobID: "job_2\x1b[2J", FailingSince: in(-time.Minute), ConsecutiveErrors: 1, LastError: "timeout", NextPollAt: in(-time.Second)},
				},
				OldestDue: []operator.DueJob{
					{JobID: "job_6", DueSeconds: 3725, LostLeases: 3, LeasedUntil: in(20 * time.Second)},
					{JobID: "job_2\x1b[2J", DueSeconds: 1, LastPolledAt: in(-time.Minute)},
				},
				LongRunningTotal: 7,
				LongRunning: []operator.LongJob{
					{JobID: "job_7", CreatedAt: in(-45 * 24 * time.Hour), AgeSeconds: 45 * 86400, Polls: 9000, SumeStatus: ptr("processing"), NextPollAt: in(time.Hour)},
					{JobID: "job_8", AgeSeconds: 36525 * 86400},
				},
			},
			ReadsToday: 9000, ReadsLeft: ptr(1000),
			UnfinishedSubmissions: operator.UnfinishedSubmissions{
				SubmissionsTotal: 2, SubmissionsStuck: 2,
				Submissions: []operator.Unfinished{
					{IdempotencyKey: "order-42", State: "sending", AgeSeconds: 700, LastError: ptr("http_5xx 502")},
					{IdempotencyKey: "order-43", State: "unrecorded", JobID: ptr("job_8"), AgeSeconds: 5, LastError: ptr("SQLSTATE 23502, table video_jobs, column customer_id")},
				},
			},
			Jobs: []operator.JobRow{
				{JobID: "job_1", State: "pending", SumeStatus: ptr("processing"), CreatedAt: in(-50 * time.Hour), NextPollAt: in(15 * time.Minute), LastPolledAt: in(-5 * time.Second), Polls: 30, ConsecutiveErrors: 12, LastError: ptr("http_5xx 503")},
				{JobID: "job_3", State: "completed", NextPollAt: in(-time.Hour), FinishedAt: in(-time.Hour), Polls: 3},
				{JobID: "job_4", State: "pending", NextPollAt: in(-time.Second), LeasedUntil: in(20 * time.Second)},
				{JobID: "job_5", State: "pending"},
			},
			Unknown: []string{"job_9"},
		},
		"large": {At: now, States: map[string]int{"completed": 500000}, ReadsToday: 5},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c.Mode = operator.ModeInspect
			answer, err := json.Marshal(c)
			if err != nil {
				t.Fatal(err)
			}
			var got bytes.Buffer
			if err := cli.Print(&got, answer); err != nil {
				t.Fatal(err)
			}
			want, err := os.ReadFile(filepath.Join("testdata", name+".txt"))
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(string(want), got.String()); diff != "" {
				t.Errorf("table (-want +got):\n%s\n%s", diff, got.String())
			}
		})
	}
}

func TestPrint_OtherAnswer(t *testing.T) {
	t.Parallel()
	var got bytes.Buffer
	if err := cli.Print(&got, []byte(`{"mode":"stop","finished":{"stopped":1}}`)); err != nil {
		t.Fatal(err)
	}
	want := "{\n  \"mode\": \"stop\",\n  \"finished\": {\n    \"stopped\": 1\n  }\n}\n"
	if diff := cmp.Diff(want, got.String()); diff != "" {
		t.Errorf("answer (-want +got):\n%s", diff)
	}
}

// A backfill whose states match no row says so in its note.
func TestPrint_BackfillNote(t *testing.T) {
	t.Parallel()
	sum := poller.NewSummary("run-1", operator.ModeBackfill)
	sum.Note = `no finished row is in state "faild"; states in the table: completed 12, failed 3`
	var got bytes.Buffer
	if err := cli.Print(&got, []byte(sum.JSON())); err != nil {
		t.Fatal(err)
	}
	if want := `  "note": "no finished row is in state \"faild\"; states in the table: completed 12, failed 3"`; !strings.Contains(got.String(), want) {
		t.Errorf("printed %s, want %s in it", got.String(), want)
	}
}
