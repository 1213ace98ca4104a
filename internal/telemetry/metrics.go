// Package telemetry is what a run leaves for people and alarms: structured log
// lines, and one line of metrics in CloudWatch's embedded format.
package telemetry

import "sumepoller/internal/poller"

// Namespace and Dimension under which CloudWatch keeps the metrics. The
// dimension's value is the function's name; nothing else is ever a dimension.
const (
	Namespace = "SumePoller"
	Dimension = "FunctionName"
)

// Names of the metrics; one line of the poller carries all of them.
const (
	Reads                = "Reads"                // reads begun
	Finished             = "Finished"             // jobs that reached their end
	FinishedBadly        = "FinishedBadly"        // those of them in another state than a success
	ReadErrors           = "ReadErrors"           // reads that brought no good answer
	RateLimited          = "RateLimited"          // answers of 429
	DueJobs              = "DueJobs"              // due when the run ended
	OldestDueSeconds     = "OldestDueSeconds"     // how late the latest of them is
	OldestPendingSeconds = "OldestPendingSeconds" // age of the oldest pending job
	FailingJobs          = "FailingJobs"          // without a good answer for over 30 minutes
	LatenessSeconds      = "LatenessSeconds"      // due time to claim, of each read
	ReadsToday           = "ReadsToday"           // reads taken from the day's allowance
	StuckSubmissions     = "StuckSubmissions"     // sent ten minutes ago, no answer yet, or unrecorded
)

// FinishedStates returns the states that a job can finish in, for the stack,
// which may not import poller. Each is a key of finished in the summary.
func FinishedStates() []string { return poller.FinishedStates() }
