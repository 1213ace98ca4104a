package stack_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"sumepoller/internal/poller"
	"sumepoller/internal/telemetry"
)

// widget holds what the tests check of a widget.
type widget struct {
	Type       string
	X, Y       int
	Width      int
	Properties struct {
		Markdown string
		Title    string
		Query    string
		Alarms   []any
	}
}

// widgets returns the dashboard's widgets from top to bottom. A name that
// CloudFormation fills in becomes "filled-in".
func widgets(t *testing.T, s synthesis) []widget {
	t.Helper()
	_, r := only(t, s.app, "AWS::CloudWatch::Dashboard")
	join := r.Properties["DashboardBody"].(map[string]any)["Fn::Join"].([]any)
	var body strings.Builder
	for _, part := range join[1].([]any) {
		switch part := part.(type) {
		case string:
			body.WriteString(part)
		case map[string]any:
			body.WriteString("filled-in")
		}
	}
	var board struct{ Widgets []widget }
	if err := json.Unmarshal([]byte(body.String()), &board); err != nil {
		t.Fatal(err)
	}
	return board.Widgets
}

func TestDashboard_Order(t *testing.T) {
	var got []string
	y := -1
	for _, w := range widgets(t, given) {
		if w.Type != "text" {
			continue
		}
		got = append(got, w.Properties.Markdown)
		if w.Y <= y || w.X != 0 || w.Width != 24 {
			t.Errorf("%s is at %d,%d, want it alone in a row", w.Properties.Markdown, w.X, w.Y)
		}
		y = w.Y
	}
	want := []string{
		"## Is it running?", "## Is anything late?", "## How did the jobs end?", "## How is the daily quota used?", "## What failed last?",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

func TestDashboard_Widgets(t *testing.T) {
	shown, queries, all := 0, 0, ""
	for _, w := range widgets(t, given) {
		shown += len(w.Properties.Alarms)
		if w.Type != "log" {
			continue
		}
		queries++
		all += w.Properties.Query
		if !strings.Contains(w.Properties.Query, "SOURCE '/aws/lambda/sume-poller-poller'") || !strings.Contains(w.Properties.Query, `filter message = "run"`) {
			t.Errorf("%s: got %s", w.Properties.Title, w.Properties.Query)
		}
	}
	if want := len(alarms(t, given)); shown != want {
		t.Errorf("got %d alarms shown, want %d", shown, want)
	}
	for _, state := range telemetry.FinishedStates() {
		if !strings.Contains(all, "sum(summary.finished."+state+") as "+state) {
			t.Errorf("no query counts the jobs that ended as %s", state)
		}
	}
	for class := range poller.NewSummary("id", poller.ModeScheduled).Errors {
		if !strings.Contains(all, "sum(summary.errors."+string(class)+") as "+string(class)) {
			t.Errorf("no query counts the errors of class %s", class)
		}
	}
	if queries != 4 {
		t.Errorf("got %d queries, want 4", queries)
	}
}
