package telemetry_test

import (
	"bytes"
	"encoding/json"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"sumepoller/internal/poller"
	"sumepoller/internal/telemetry"
)

// docs/operate.md lists the metrics that a run writes.
func TestEmit_Documented(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	run := telemetry.Run{Summary: poller.NewSummary("run", poller.ModeScheduled), Counted: true}
	if err := telemetry.Emit(&out, run); err != nil {
		t.Fatal(err)
	}
	var line struct {
		AWS struct {
			CloudWatchMetrics []struct{ Metrics []struct{ Name string } }
		} `json:"_aws"`
	}
	if err := json.Unmarshal(out.Bytes(), &line); err != nil {
		t.Fatal(err)
	}
	var want []string
	for _, m := range line.AWS.CloudWatchMetrics[0].Metrics {
		want = append(want, m.Name)
	}
	page, err := os.ReadFile("../../docs/operate.md")
	if err != nil {
		t.Fatal(err)
	}
	_, table, _ := strings.Cut(string(page), "\n| metric | meaning |\n")
	table, _, _ = strings.Cut(table, "\n\n")
	var got []string
	for _, row := range regexp.MustCompile("(?m)^\\| (`[^|]*) \\|").FindAllStringSubmatch(table, -1) {
		for _, name := range regexp.MustCompile("`(\\w+)`").FindAllStringSubmatch(row[1], -1) {
			got = append(got, name[1])
		}
	}
	slices.Sort(want)
	slices.Sort(got)
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("metrics (-program +docs/operate.md):\n%s", diff)
	}
}
