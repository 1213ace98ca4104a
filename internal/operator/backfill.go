package operator

import (
	"errors"
	"time"
)

// Backfill makes rows due: those of JobIDs in any state, and new ids too; the
// finished rows in States; and, with Overdue, the pending rows in back-off.
type Backfill struct {
	JobIDs         []string   `json:"job_ids"` // each once
	States         []string   `json:"states"`  // never pending
	Overdue        bool       `json:"overdue"`
	CreatedAfter   *time.Time `json:"created_after"`    // inclusive; narrows States and Overdue
	CreatedBefore  *time.Time `json:"created_before"`   // exclusive; narrows States and Overdue
	Limit          int        `json:"limit"`            // rows at most, oldest created_at first, then job_id; 0: all
	ReadsPerMinute int        `json:"reads_per_minute"` // 0: Pace works it out
	DryRun         bool       `json:"dry_run"`          // count, change nothing
}

// backfillFields is a backfill as it is sent, where a 0 is not the same as
// nothing.
type backfillFields struct {
	Backfill
	Limit          *count `json:"limit"`
	ReadsPerMinute *count `json:"reads_per_minute"`
}

func (f *backfillFields) request() (Request, error) {
	b := f.Backfill
	var err error
	if b.JobIDs, err = distinctIDs("backfill.job_ids", b.JobIDs); err != nil {
		return Request{}, err
	}
	if b.States, err = distinct("backfill.states", b.States, checkState); err != nil {
		return Request{}, err
	}
	if f.Limit != nil {
		b.Limit = int(*f.Limit)
	}
	if f.ReadsPerMinute != nil {
		b.ReadsPerMinute = int(*f.ReadsPerMinute)
	}
	switch {
	case len(b.JobIDs) == 0 && len(b.States) == 0 && !b.Overdue:
		return Request{}, errors.New(`backfill: selects nothing; give job_ids, states or "overdue": true`)
	case b.CreatedAfter != nil && b.CreatedBefore != nil && !b.CreatedAfter.Before(*b.CreatedBefore):
		return Request{}, errors.New("backfill.created_after: want a time before created_before")
	}
	return Request{Mode: ModeBackfill, Backfill: &b}, nil
}

func checkState(state string) string {
	if state == "pending" {
		return "pending rows are not finished; use job_ids or overdue for them"
	}
	return ""
}

// Pace returns the time from one row to the next, after the first hundred. It
// comes from the request's own rate, or otherwise from the smaller of the
// minute limit and the daily limit, where 0 means no limit. Without any limit
// it is a second.
func (b *Backfill) Pace(perMinute, perDay int) time.Duration {
	if b.ReadsPerMinute > 0 {
		return time.Minute / time.Duration(b.ReadsPerMinute)
	}
	var pace time.Duration
	if perMinute > 0 {
		pace = time.Minute / time.Duration(perMinute)
	}
	if perDay > 0 {
		pace = max(pace, 24*time.Hour/time.Duration(perDay))
	}
	if pace == 0 {
		return time.Second
	}
	return pace
}

// Backfilled counts what a backfill changed or, in a dry run, would change.
type Backfilled struct {
	Registered int // rows added
	Reopened   int // existing rows changed: reopened, or made due earlier

	// Note names the states of the request that no row is in, and the states
	// that exist. It is empty if each has a row.
	Note string
}
