// Package telemetry writes what a run leaves for people and alarms: structured
// log lines, and one line of metrics in CloudWatch's embedded metric format.
package telemetry

import (
	"math"
	"slices"
	"time"

	"sumepoller/internal/poller"
)

// CloudWatch keeps the metrics in this namespace. The value of their only
// dimension is the function's name.
const (
	Namespace = "SumePoller"
	Dimension = "FunctionName"
)

// Names of the metrics.
const (
	Reads                = "Reads"                // reads started
	Finished             = "Finished"             // jobs finished
	FinishedBadly        = "FinishedBadly"        // finished jobs that did not succeed
	ReadErrors           = "ReadErrors"           // read errors other than 429
	RateLimited          = "RateLimited"          // answers of 429
	LatenessSeconds      = "LatenessSeconds"      // from the due time to the claim, of each read
	DueJobs              = "DueJobs"              // due rows at the end of the run
	OldestDueSeconds     = "OldestDueSeconds"     // how long the oldest of them has been due
	OldestPendingSeconds = "OldestPendingSeconds" // age of the oldest pending job
	FailingJobs          = "FailingJobs"          // pending jobs with nothing but read errors for config.FailingAfter
	ReadsToday           = "ReadsToday"           // reads taken from the daily quota
	StuckSubmissions     = "StuckSubmissions"     // orders without an answer for config.StuckAfter, or unrecorded
)

// metrics are all metrics. A run that could not look at the table leaves out
// those that come from it: with a zero an alarm would recover because the
// database is gone.
var metrics = []struct {
	name, unit string
	fromTable  bool
	value      func(s poller.Summary) any // a number or a histogram
}{
	{Reads, "Count", false, func(s poller.Summary) any { return s.Reads }},
	{Finished, "Count", false, func(s poller.Summary) any { all, _ := finished(s); return all }},
	{FinishedBadly, "Count", false, func(s poller.Summary) any { _, badly := finished(s); return badly }},
	{ReadErrors, "Count", false, readErrors},
	{RateLimited, "Count", false, func(s poller.Summary) any { return s.Errors[poller.RateLimited] }},
	{LatenessSeconds, "Seconds", false, lateness},
	{DueJobs, "Count", true, func(s poller.Summary) any { return s.Backlog.Due }},
	{OldestDueSeconds, "Seconds", true, func(s poller.Summary) any { return seconds(s.Backlog.OldestDue) }},
	{OldestPendingSeconds, "Seconds", true, func(s poller.Summary) any { return seconds(s.Backlog.OldestPending) }},
	{FailingJobs, "Count", true, func(s poller.Summary) any { return s.Backlog.Failing }},
	{ReadsToday, "Count", true, func(s poller.Summary) any { return s.Backlog.ReadsToday }},
	{StuckSubmissions, "Count", true, func(s poller.Summary) any { return s.Backlog.StuckSubmissions }},
}

// Metrics returns the names of all metrics, in the order in which a run that
// could read the table prints them.
func Metrics() []string {
	names := make([]string, len(metrics))
	for i, m := range metrics {
		names[i] = m.name
	}
	return names
}

// FinishedStates returns the states that a job can finish in, for the stack,
// which may not import poller. Each is a key of finished in the summary.
func FinishedStates() []string { return poller.FinishedStates() }

// finished counts the finished jobs, and those of them that did not succeed.
func finished(s poller.Summary) (all, badly int) {
	for state, n := range s.Finished {
		all += n
		if !poller.Succeeded(state) {
			badly += n
		}
	}
	return all, badly
}

func readErrors(s poller.Summary) any {
	n := 0
	for class, count := range s.Errors {
		if class != poller.RateLimited { // which has a metric
			n += count
		}
	}
	return n
}

// maxValues is how many values of one metric CloudWatch takes from a line.
const maxValues = 100

// histogram is a metric with several values.
type histogram struct {
	Values []float64
	Counts []int
}

// lateness puts the values into at most a hundred groups of about the same size.
// The greatest value of a group stands for it, so that no percentile is too low
// and the maximum is exact. A run that had nothing to claim has one zero.
func lateness(s poller.Summary) any {
	if len(s.Late) == 0 {
		return histogram{Values: []float64{0}, Counts: []int{1}}
	}
	sorted := slices.Sorted(slices.Values(s.Late))
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

func seconds(d time.Duration) float64 { return d.Round(time.Millisecond).Seconds() }
