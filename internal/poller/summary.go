package poller

import (
	"encoding/json"
	"strings"
	"time"
)

// ModeScheduled is the mode of a scheduled run. Other modes are operator
// requests.
const ModeScheduled = "scheduled"

// Why a run stopped.
const (
	StoppedDrained        = "drained"         // nothing is due before the time budget ends
	StoppedBudget         = "budget"          // the time budget is used up, or due rows cannot be claimed
	StoppedRateLimited    = "rate_limited"    // the minute limit allows no read before the time budget ends
	StoppedDailyLimit     = "daily_limit"     // the daily quota or the pace line allows no read before the time budget ends
	StoppedAPIUnavailable = "api_unavailable" // too many errors in a row, or a refused key
	StoppedCanceled       = "canceled"        // canceled from outside, or a database error
)

// Summary is the result of a run: its answer, and the source of its log line
// and its metrics.
type Summary struct {
	RunID string `json:"run_id"`
	Mode  string `json:"mode"`
	Counts
	DueRemaining     int     `json:"due_remaining"`
	OldestDueSeconds float64 `json:"oldest_due_seconds"`
	ReadsToday       int     `json:"reads_today"`
	Stopped          string  `json:"stopped"`
	ElapsedSeconds   float64 `json:"elapsed_seconds"`
	Note             string  `json:"note,omitempty"` // a backfill's, on states that no row is in
	Backlog          Backlog `json:"-"`              // at the end of the run, for the metrics
}

// Counts are what a run did.
type Counts struct {
	Claimed     int            `json:"claimed"`
	Polled      int            `json:"polled"`      // reads that got an HTTP answer; 429 not, 401 only where the key was accepted
	Finished    map[string]int `json:"finished"`    // by state reached
	Rescheduled int            `json:"rescheduled"` // good answers of jobs that are not finished
	Errors      map[Class]int  `json:"errors"`
	Released    int            `json:"released"`
	LostLeases  int            `json:"lost_leases"`
	Registered  int            `json:"registered"`
	Reopened    int            `json:"reopened"`

	// For the metrics: the reads that were started, and for each the seconds
	// from its due time to its claim.
	Reads int       `json:"-"`
	Late  []float64 `json:"-"`
}

// NewSummary returns an empty summary with every class of error in it.
func NewSummary(runID, mode string) Summary {
	s := Summary{RunID: runID, Mode: mode}
	s.Finished, s.Errors = map[string]int{}, map[Class]int{}
	for _, c := range []Class{HTTP5xx, HTTP4xx, Timeout, Network, Malformed, RateLimited, Unauthorized, WriteRefused} {
		s.Errors[c] = 0
	}
	return s
}

// JSON returns the summary on one line, as the function answers it.
func (s Summary) JSON() string {
	b, err := json.Marshal(s)
	if err != nil {
		return "{}"
	}
	return string(b)
}

// settled counts a read that was settled. state is the row's, empty while it is
// pending.
func (c *Counts) settled(s Settlement, state string) {
	if s.Polled {
		c.Polled++
	}
	if s.Class != "" {
		c.Errors[s.Class]++
	}
	if state != "" {
		c.Finished[state]++
	} else if s.Class == "" {
		c.Rescheduled++
	}
}

// counted takes the state of the table at the end of the run.
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

// Kinds of run errors: the first word of the error.
const (
	KindUnauthorized = "unauthorized"
	KindSecret       = "secret"
	KindDatabase     = "database"
)

// RunError is the error of a run that could not do its work. The summary that
// comes with it shows what was done before.
type RunError struct {
	Kind string
	Err  error
}

// Error begins with the kind and a colon. It is one line, because the summary
// follows it: drivers write each address of a host on a separate line.
func (e *RunError) Error() string {
	return e.Kind + ": " + strings.Join(strings.Fields(e.Err.Error()), " ")
}

// Unwrap returns the cause.
func (e *RunError) Unwrap() error { return e.Err }
