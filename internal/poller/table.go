package poller

import (
	"context"
	"time"
)

// Table is what a run needs of the database.
type Table interface {
	Queue
	Schedule
}

// Queue hands out rows and takes them back. Its methods may be called at the
// same time. Each call can be repeated after an error, and an error means that
// the answer is unknown: the database may have done the work. If the table
// refuses to change a row, that is not an error of the call, and never stops
// the other rows.
type Queue interface {
	// Claim leases due rows, at most r.Limit of them.
	Claim(ctx context.Context, r ClaimRequest) (Claimed, error)
	// Settle writes a batch and announces the jobs that it finished. The
	// results have the order of the batch. With an error, only the known
	// results at the beginning of the batch are returned. A row that was
	// refused is not claimed again in this run.
	Settle(ctx context.Context, batch []Settlement) ([]Result, error)
	// Release makes rows due at once and counts nothing. For each unread row,
	// it gives a read back to the daily quota of that date. Rows that were read
	// go behind all other due rows.
	Release(ctx context.Context, date string, rows []Release) ([]Result, error)
}

// Schedule reports what is due, now and later.
type Schedule interface {
	// NextDue returns how long until the earliest pending row can be claimed,
	// zero or less where one can be claimed now. ok is false where there is no
	// such row. Rows under the leases in own are left out. Rows leased to
	// others count at the end of their lease.
	NextDue(ctx context.Context, own []LeaseID) (in time.Duration, ok bool, err error)
	// Today returns the database's UTC day.
	Today(ctx context.Context) (Day, error)
	// Backlog counts the rows that wait.
	Backlog(ctx context.Context) (Backlog, error)
}

// ClaimRequest asks for due rows.
type ClaimRequest struct {
	Lease    LeaseID       // new for every claim, the same when a claim is repeated
	Limit    int           // rows wanted at most; at least 1
	For      time.Duration // length of the lease
	PaceLine int           // what the day's count of reads may reach; negative: reads are not counted
}

// Claimed is the answer to a claim. Day.Reads includes the reads of these rows.
type Claimed struct {
	Jobs      []Job // oldest due time first
	Day       Day
	QuotaDate string       // the UTC date whose count the reads were taken from, for Release
	Refused   []WriteError // due rows that cannot be leased; later claims of this run leave them out
}

// Day is the database's UTC day and the reads counted in it.
type Day struct {
	Date    string        // as the database writes it, e.g. 2026-11-02
	Elapsed time.Duration // since midnight
	Reads   int           // taken from the daily limit so far, by all runs together
}

// Backlog counts the rows that wait, for the summary and the metrics. Counts
// are exact up to 100,000 rows each.
type Backlog struct {
	Pending          int
	Due              int           // pending, due and not leased
	OldestDue        time.Duration // for how long the oldest of them has been due
	Failing          int           // pending, with nothing but errors for config.FailingAfter
	OldestPending    time.Duration // age by created_at, else since last_polled_at
	StuckSubmissions int           // without an answer for config.StuckAfter, or bought and refused by the table
	ReadsToday       int
}
