package poller

import (
	"encoding/json"
	"strings"
	"time"
)

// ModeScheduled is the mode of a run that the schedule started. Other modes are
// operator requests.
const ModeScheduled = "scheduled"

// Why a run stopped.
const (
	StoppedDrained        = "drained"         // nothing is due before the budget ends
	StoppedBudget         = "budget"          // the time was up, or what is due cannot be claimed
	StoppedRateLimited    = "rate_limited"    // the minute's limit outlasts the budget
	StoppedDailyLimit     = "daily_limit"     // the day's allowance or its pace does
	StoppedAPIUnavailable = "api_unavailable" // failures in a row, or a refused key
	StoppedCanceled       = "canceled"        // from outside, or by a failure of the database
)

// Summary is the answer of a run, and what its log line and metrics tell.
type Summary struct {
	RunID            string         `json:"run_id"`
	Mode             string         `json:"mode"`
	Claimed          int            `json:"claimed"`
	Polled           int            `json:"polled"`      // reads that got an HTTP answer; 429 not, 401 only where the key was accepted
	Finished         map[string]int `json:"finished"`    // by state reached
	Rescheduled      int            `json:"rescheduled"` // good answers of jobs that go on
	Errors           map[Class]int  `json:"errors"`
	Released         int            `json:"released"`
	LostLeases       int            `json:"lost_leases"`
	Registered       int            `json:"registered"`
	Reopened         int            `json:"reopened"`
	DueRemaining     int            `json:"due_remaining"`
	OldestDueSeconds float64        `json:"oldest_due_seconds"`
	ReadsToday       int            `json:"reads_today"`
	Stopped          string         `json:"stopped"`
	ElapsedSeconds   float64        `json:"elapsed_seconds"`
	Note             string         `json:"note,omitempty"` // a backfill's, on states that no row is in

	// Reads counts every read that was begun; Late how late each was, in
	// seconds past its due time at its claim; Backlog what waits at the end.
	// They are for the metrics and stand in no answer.
	Reads   int       `json:"-"`
	Late    []float64 `json:"-"`
	Backlog Backlog   `json:"-"`
}

// NewSummary returns an empty summary with every class of error in it.
func NewSummary(runID, mode string) Summary {
	s := Summary{RunID: runID, Mode: mode, Finished: map[string]int{}, Errors: map[Class]int{}}
	for _, c := range []Class{HTTP5xx, HTTP4xx, Timeout, Network, Malformed, RateLimited, Unauthorized, WriteRefused} {
		s.Errors[c] = 0
	}
	return s
}

// JSON returns the summary as the contract shows it, on one line.
func (s Summary) JSON() string {
	b, err := json.Marshal(s)
	if err != nil {
		return "{}"
	}
	return string(b)
}

// counted takes the state of the table at the run's end.
func (s *Summary) counted(b Backlog) {
	s.Backlog = b
	s.DueRemaining = b.Due
	s.OldestDueSeconds = seconds(b.OldestDue)
	s.ReadsToday = b.ReadsToday
}

// seconds rounds to the millisecond.
func seconds(d time.Duration) float64 {
	return d.Round(time.Millisecond).Seconds()
}

// Kinds of a run that could not do its work, as its error begins.
const (
	KindUnauthorized = "unauthorized"
	KindSecret       = "secret"
	KindDatabase     = "database"
)

// RunError is the error of a run that could not do its work. The summary that
// comes with it tells what was done before.
type RunError struct {
	Kind string
	Err  error
}

// Error begins with the kind and a colon and is one line, since the summary
// follows it: drivers give each address of a host a line of its own.
func (f *RunError) Error() string {
	return f.Kind + ": " + strings.Join(strings.Fields(f.Err.Error()), " ")
}

// Unwrap returns the cause.
func (f *RunError) Unwrap() error { return f.Err }
