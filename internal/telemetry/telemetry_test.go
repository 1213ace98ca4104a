package telemetry_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-lambda-go/lambdacontext"
	"github.com/google/go-cmp/cmp"

	"sumepoller/internal/poller"
	"sumepoller/internal/telemetry"
)

func busy() poller.Summary {
	s := poller.NewSummary("run-1", poller.ModeScheduled)
	s.Claimed, s.Polled, s.Reads, s.Rescheduled = 9, 7, 9, 1
	s.Finished = map[string]int{"completed": 2, "ready": 1, "failed": 1, "canceled": 1, "not_found": 1}
	s.Errors[poller.Timeout], s.Errors[poller.HTTP4xx], s.Errors[poller.RateLimited] = 1, 1, 3
	s.Late = []float64{2.5, 0, 0.25, 0}
	s.Backlog = poller.Backlog{
		Pending: 40, Due: 4, OldestDue: 90 * time.Second, Failing: 3,
		OldestPending: time.Hour, StuckSubmissions: 2, ReadsToday: 512,
	}
	return s
}

func TestEmit_AllMetrics(t *testing.T) {
	t.Parallel()
	want := map[string]any{
		"FunctionName": "poller", "Reads": 9.0, "Finished": 6.0, "FinishedBadly": 3.0, "ReadErrors": 2.0, "RateLimited": 3.0,
		"DueJobs": 4.0, "OldestDueSeconds": 90.0, "OldestPendingSeconds": 3600.0, "FailingJobs": 3.0,
		"ReadsToday": 512.0, "StuckSubmissions": 2.0,
		"LatenessSeconds": map[string]any{"Values": []any{0.0, 0.25, 2.5}, "Counts": []any{2.0, 1.0, 1.0}},
	}
	line := emit(t, telemetry.Run{Function: "poller", Summary: busy(), Counted: true, At: time.UnixMilli(1_790_000_000_123)})
	directive := line.directive(t)
	if line.meta["Timestamp"] != 1_790_000_000_123.0 || directive["Namespace"] != "SumePoller" {
		t.Errorf("metadata %v", line.meta)
	}
	if diff := cmp.Diff([]any{[]any{"FunctionName"}}, directive["Dimensions"]); diff != "" {
		t.Errorf("dimensions (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(want, line.members); diff != "" {
		t.Errorf("members (-want +got):\n%s", diff)
	}
}

func TestEmit_IdleRun(t *testing.T) {
	t.Parallel()
	line := emit(t, telemetry.Run{Function: "poller", Summary: poller.NewSummary("run-1", poller.ModeScheduled), Counted: true})
	if got := len(line.names(t)); got != 12 {
		t.Errorf("%d metrics, want 12: %v", got, line.names(t))
	}
	want := map[string]any{"Values": []any{0.0}, "Counts": []any{1.0}}
	if diff := cmp.Diff(want, line.members["LatenessSeconds"]); diff != "" {
		t.Errorf("lateness (-want +got):\n%s", diff)
	}
}

func TestEmit_TableNotRead(t *testing.T) {
	t.Parallel()
	s := busy()
	s.Late, s.Backlog = nil, poller.Backlog{}
	want := []string{"FinishedBadly", "Finished", "RateLimited", "ReadErrors", "Reads"}
	slices.Sort(want)
	if diff := cmp.Diff(want, emit(t, telemetry.Run{Function: "poller", Summary: s}).names(t)); diff != "" {
		t.Errorf("metrics (-want +got):\n%s", diff)
	}
}

// CloudWatch drops what is beyond a hundred values of one metric.
func TestEmit_LatenessGroups(t *testing.T) {
	t.Parallel()
	s := busy()
	s.Late = nil
	for i := range 5000 {
		s.Late = append(s.Late, float64(5000-i)/10)
	}
	line := emit(t, telemetry.Run{Function: "poller", Summary: s, Counted: true})
	lateness := line.members["LatenessSeconds"].(map[string]any)
	values, counts := lateness["Values"].([]any), lateness["Counts"].([]any)
	total := 0.0
	for _, n := range counts {
		total += n.(float64)
	}
	if len(values) != 100 || len(counts) != 100 || total != 5000 {
		t.Errorf("%d values, %d counts of %v observations", len(values), len(counts), total)
	}
	if values[99] != 500.0 || values[49] != 250.0 {
		t.Errorf("maximum %v, median %v; want 500 and 250", values[99], values[49])
	}
}

func TestEmit_NoJobID(t *testing.T) {
	t.Parallel()
	s := busy()
	s.RunID = "job_42"
	var out bytes.Buffer
	if err := telemetry.Emit(&out, telemetry.Run{Function: "poller", Summary: s, Counted: true}); err != nil {
		t.Fatal(err)
	}
	if strings.Contains(out.String(), "job_42") {
		t.Errorf("%s", &out)
	}
}

func TestLogSummary(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	log := telemetry.NewLogger(&out, slog.LevelError)
	ctx := lambdacontext.NewContext(context.Background(), &lambdacontext.LambdaContext{AwsRequestID: "req-1"})
	log.InfoContext(ctx, "below the level")
	if err := telemetry.LogSummary(ctx, log, busy(), errors.New("database: gone")); err != nil {
		t.Fatal(err)
	}
	var got struct {
		Level     string
		Message   string
		RequestID string `json:"request_id"`
		Error     string
		Summary   poller.Summary
		Failing   int
		Timestamp time.Time
	}
	if err := json.Unmarshal(out.Bytes(), &got); err != nil || bytes.Count(out.Bytes(), []byte("\n")) != 1 {
		t.Fatalf("%v in %s", err, &out)
	}
	if got.Level != "INFO" || got.Message != "run" || got.RequestID != "req-1" || got.Error != "database: gone" ||
		got.Summary.Claimed != 9 || got.Failing != 3 || got.Timestamp.IsZero() {
		t.Errorf("line %s", &out)
	}
}

// line is a decoded line of metrics.
type line struct {
	meta    map[string]any
	members map[string]any // all but the metadata
}

func emit(t *testing.T, r telemetry.Run) line {
	t.Helper()
	var out bytes.Buffer
	if err := telemetry.Emit(&out, r); err != nil {
		t.Fatal(err)
	}
	text := out.String()
	if !strings.HasPrefix(text, "{") || strings.Count(text, "\n") != 1 || !strings.HasSuffix(text, "}\n") {
		t.Fatalf("got %q, want one JSON line", text)
	}
	l := line{members: map[string]any{}}
	if err := json.Unmarshal(out.Bytes(), &l.members); err != nil {
		t.Fatal(err)
	}
	l.meta = l.members["_aws"].(map[string]any)
	delete(l.members, "_aws")
	return l
}

func (l line) directive(t *testing.T) map[string]any {
	t.Helper()
	directives := l.meta["CloudWatchMetrics"].([]any)
	if len(directives) != 1 {
		t.Fatalf("%d directives", len(directives))
	}
	return directives[0].(map[string]any)
}

// names returns the metrics that are defined and have a value, sorted.
func (l line) names(t *testing.T) []string {
	t.Helper()
	var names []string
	for _, m := range l.directive(t)["Metrics"].([]any) {
		name := m.(map[string]any)["Name"].(string)
		if _, ok := l.members[name]; !ok {
			t.Errorf("%s is defined and missing", name)
		}
		names = append(names, name)
	}
	if len(names) != len(l.members)-1 {
		t.Errorf("%d metrics defined, members %v", len(names), l.members)
	}
	slices.Sort(names)
	return names
}
