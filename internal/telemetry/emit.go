package telemetry

import (
	"encoding/json"
	"fmt"
	"io"
	"math"
	"slices"
	"time"

	"sumepoller/internal/poller"
)

// maxValues is how many values of one metric CloudWatch takes from a line.
const maxValues = 100

// Run is one run as its metrics tell it.
type Run struct {
	Function string // the function's name
	Summary  poller.Summary
	Counted  bool // Summary.Backlog was read from the table at the run's end
	At       time.Time
}

// Emit writes the run's metrics as one bare line in one call of w.Write. What
// a run does not know, since it could not look at the table, is left out rather
// than told as zero: an alarm must not clear because the database is gone.
func Emit(w io.Writer, r Run) error {
	metrics := r.metrics()
	line := map[string]any{Dimension: r.Function}
	names := make([]definition, 0, len(metrics))
	for _, m := range metrics {
		names = append(names, definition{Name: m.name, Unit: m.unit})
		line[m.name] = m.value
	}
	line["_aws"] = metadata{Timestamp: r.At.UnixMilli(), CloudWatchMetrics: []directive{
		{Namespace: Namespace, Dimensions: [][]string{{Dimension}}, Metrics: names},
	}}
	text, err := json.Marshal(line)
	if err != nil {
		return fmt.Errorf("encode the metrics: %w", err)
	}
	if _, err := w.Write(append(text, '\n')); err != nil {
		return fmt.Errorf("write the metrics: %w", err)
	}
	return nil
}

// metric is one value of the line: a number, or a histogram.
type metric struct {
	name  string
	unit  string
	value any
}

func (r Run) metrics() []metric {
	s := r.Summary
	finished, badly := ends(s.Finished)
	all := []metric{
		{Reads, "Count", s.Reads},
		{Finished, "Count", finished},
		{FinishedBadly, "Count", badly},
		{ReadErrors, "Count", troubled(s.Errors)},
		{RateLimited, "Count", s.Errors[poller.RateLimited]},
	}
	if !r.Counted {
		if len(s.Late) > 0 {
			all = append(all, metric{LatenessSeconds, "Seconds", lateness(s.Late)})
		}
		return all
	}
	return append(all,
		metric{LatenessSeconds, "Seconds", lateness(s.Late)},
		metric{DueJobs, "Count", s.Backlog.Due},
		metric{OldestDueSeconds, "Seconds", seconds(s.Backlog.OldestDue)},
		metric{OldestPendingSeconds, "Seconds", seconds(s.Backlog.OldestPending)},
		metric{FailingJobs, "Count", s.Backlog.Failing},
		metric{ReadsToday, "Count", s.Backlog.ReadsToday},
		metric{StuckSubmissions, "Count", s.Backlog.StuckSubmissions},
	)
}

// ends counts finished jobs, and those of them that did not come to a success.
func ends(finished map[string]int) (all, badly int) {
	for state, n := range finished {
		all += n
		if !poller.Succeeded(state) {
			badly += n
		}
	}
	return all, badly
}

// troubled counts reads without a good answer; those refused for the limit have
// a metric of their own.
func troubled(errors map[poller.Class]int) int {
	n := 0
	for class, count := range errors {
		if class != poller.RateLimited {
			n += count
		}
	}
	return n
}

// histogram is a metric of many values.
type histogram struct {
	Values []float64
	Counts []int
}

// lateness puts the values into at most a hundred groups of about the same
// size, each told by its greatest, so that no percentile is understated and the
// maximum is exact. A run that had nothing to claim was late for nothing: one
// zero.
func lateness(late []float64) histogram {
	if len(late) == 0 {
		return histogram{Values: []float64{0}, Counts: []int{1}}
	}
	sorted := slices.Sorted(slices.Values(late))
	groups := min(maxValues, len(sorted))
	var h histogram
	for i := range groups {
		from, to := i*len(sorted)/groups, (i+1)*len(sorted)/groups
		value := math.Round(max(sorted[to-1], 0)*1000) / 1000
		if last := len(h.Values) - 1; last >= 0 && h.Values[last] == value {
			h.Counts[last] += to - from
			continue
		}
		h.Values = append(h.Values, value)
		h.Counts = append(h.Counts, to-from)
	}
	return h
}

// The embedded metric format's own members.
type (
	metadata struct {
		Timestamp         int64 // milliseconds since the epoch
		CloudWatchMetrics []directive
	}
	directive struct {
		Namespace  string
		Dimensions [][]string
		Metrics    []definition
	}
	definition struct {
		Name string
		Unit string
	}
)
