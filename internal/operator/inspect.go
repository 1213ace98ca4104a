package operator

import (
	"fmt"
	"time"
)

// Bounds of an inspect answer, which has to fit in Lambda's 6 MB.
const (
	DefaultInspectLimit = 20
	MaxInspectRows      = 2000 // job_ids asked for, and failing jobs and submissions shown, at most
	MaxInspectListed    = 500  // due and long-running jobs shown, at most
)

// LongRunning is the age from which a pending job is listed as long-running.
// The alarm oldest-pending has the same threshold.
const LongRunning = 24 * time.Hour

// Inspect is a request to show what the tables hold.
type Inspect struct {
	JobIDs []string `json:"job_ids"` // rows to show, besides the overview; each once
	Limit  int      `json:"limit"`   // rows of each list but Jobs, at most; 0: DefaultInspectLimit
}

// inspectFields is an inspect as it is sent, where a 0 is not the same as
// nothing.
type inspectFields struct {
	Inspect
	Limit *count `json:"limit"`
}

func (f *inspectFields) request() (Request, error) {
	q := f.Inspect
	var err error
	if q.JobIDs, err = distinctIDs("inspect.job_ids", q.JobIDs); err != nil {
		return Request{}, err
	}
	if len(q.JobIDs) > MaxInspectRows {
		return Request{}, fmt.Errorf("inspect.job_ids: %d ids; one answer holds at most %d", len(q.JobIDs), MaxInspectRows)
	}
	if f.Limit != nil {
		q.Limit = int(*f.Limit)
	}
	return Request{Mode: ModeInspect, Inspect: &q}, nil
}

// Inspection is the answer to an inspect. It holds no final answer of Sume, no
// API key and no URL. The caller sets RunID. Times are UTC. A time that JSON
// cannot hold (infinite, or outside of the years 1 to 9999) is null.
type Inspection struct {
	RunID string    `json:"run_id"`
	Mode  string    `json:"mode"`
	At    time.Time `json:"at"` // the database's clock; all numbers are from this time

	States      map[string]int `json:"states"`       // rows by state
	StatesExact bool           `json:"states_exact"` // false: a large table, the counts are lower bounds
	PendingJobs
	ReadsToday int  `json:"reads_today"` // in this UTC day, all runs together
	ReadsLeft  *int `json:"reads_left"`  // the daily quota; null: no daily limit
	UnfinishedSubmissions
	Jobs    []JobRow `json:"jobs,omitempty"`    // the rows of job_ids, by job_id
	Unknown []string `json:"unknown,omitempty"` // job_ids that are not in the table
}

// PendingJobs are the pending rows of an Inspection.
type PendingJobs struct {
	Due              int          `json:"due"`                // due and not leased
	OldestDueSeconds float64      `json:"oldest_due_seconds"` // of the oldest of them, at most a century
	OldestDue        []DueJob     `json:"oldest_due"`         // due, leased or not, oldest first, at most the limit
	Leased           int          `json:"leased"`             // being read now
	LongRunningTotal int          `json:"long_running_total"` // with a created_at more than LongRunning ago
	LongRunning      []LongJob    `json:"long_running"`       // oldest first, at most the limit
	FailingTotal     int          `json:"failing_total"`      // with nothing but errors since failing_since
	Failing          []FailingJob `json:"failing"`            // longest failing first, at most the limit
}

// DueJob is one due row. If a row stays in the list while others are read, it
// cannot be claimed, or its lease is lost again and again.
type DueJob struct {
	JobID        string     `json:"job_id"`
	DueSeconds   int64      `json:"due_seconds"` // since its due time, at most a century
	LostLeases   int        `json:"lost_leases"`
	LeasedUntil  *time.Time `json:"leased_until"` // null: no lease
	LastPolledAt *time.Time `json:"last_polled_at"`
}

// LongJob is one pending row older than LongRunning.
type LongJob struct {
	JobID      string     `json:"job_id"`
	CreatedAt  *time.Time `json:"created_at"`
	AgeSeconds int64      `json:"age_seconds"` // at most a century
	Polls      int        `json:"polls"`
	SumeStatus *string    `json:"sume_status"`
	NextPollAt *time.Time `json:"next_poll_at"` // null: never
}

// FailingJob is one pending row in back-off.
type FailingJob struct {
	JobID             string     `json:"job_id"`
	FailingSince      *time.Time `json:"failing_since"`
	ConsecutiveErrors int        `json:"consecutive_errors"`
	LastError         string     `json:"last_error"`
	LastPolledAt      *time.Time `json:"last_polled_at"`
	NextPollAt        *time.Time `json:"next_poll_at"` // null: never
}

// JobRow is one row of the table, without final_status.
type JobRow struct {
	JobID             string     `json:"job_id"`
	State             string     `json:"state"`
	SumeStatus        *string    `json:"sume_status"`
	CreatedAt         *time.Time `json:"created_at"`
	NextPollAt        *time.Time `json:"next_poll_at"` // null: never
	LeasedUntil       *time.Time `json:"leased_until"` // null: no lease
	LastPolledAt      *time.Time `json:"last_polled_at"`
	FinishedAt        *time.Time `json:"finished_at"`
	Polls             int        `json:"polls"`
	ConsecutiveErrors int        `json:"consecutive_errors"`
	FailingSince      *time.Time `json:"failing_since"`
	LostLeases        int        `json:"lost_leases"`
	LastError         *string    `json:"last_error"`
}

// UnfinishedSubmissions are the orders of an Inspection whose job is not
// recorded yet.
type UnfinishedSubmissions struct {
	Submissions      []Unfinished `json:"submissions"` // oldest first, at most the limit
	SubmissionsTotal int          `json:"submissions_total"`
	SubmissionsStuck int          `json:"submissions_stuck"` // of these, without an answer for config.StuckAfter, or unrecorded
}

// Unfinished is one order whose job is not recorded yet. The same order, sent to
// the submit function again, finishes it.
type Unfinished struct {
	IdempotencyKey string  `json:"idempotency_key"`
	State          string  `json:"state"`  // sending, or unrecorded: bought, and the table refused its row
	JobID          *string `json:"job_id"` // null: not known
	AgeSeconds     int64   `json:"age_seconds"`
	LastError      *string `json:"last_error"`
}
