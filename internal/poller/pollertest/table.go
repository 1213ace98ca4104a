// Package pollertest is a fake of the interfaces that internal/poller uses: a
// table (poller.Queue and poller.Schedule) and an API (poller.Reader), both in
// memory. They use the clock of the time package, so that in a bubble of
// testing/synctest a day of runs takes seconds. What PostgreSQL and HTTP add is
// tested in internal/postgres and internal/sume.
package pollertest

import (
	"context"
	"slices"
	"strings"
	"sync"
	"time"

	"sumepoller/internal/poller"
)

// longestLease is the longest lease. A lease that ends later than that from now
// counts as expired.
const longestLease = 15 * time.Minute

// Row is one row of a Table.
type Row struct {
	ID                string
	State             string
	Due               time.Time
	LeasedUntil       time.Time
	Lease             poller.LeaseID
	LostLeases        int
	Polls             int
	ConsecutiveErrors int
	FailingSince      time.Time
	NotFound          int
	LastError         string
	Status            string
	Created           time.Time
	FinishedAt        time.Time
}

// Table is a table in memory. It is safe for concurrent use.
type Table struct {
	mu      sync.Mutex
	rows    map[string]*Row
	pending map[string]*Row // those of rows that are pending
	reads   map[string]int  // by UTC date
}

// NewTable returns an empty table.
func NewTable() *Table {
	return &Table{rows: map[string]*Row{}, pending: map[string]*Row{}, reads: map[string]int{}}
}

// Add inserts a pending row that is due after dueIn.
func (t *Table) Add(id string, dueIn time.Duration) {
	t.mu.Lock()
	defer t.mu.Unlock()
	now := time.Now()
	row := &Row{ID: id, State: poller.StatePending, Created: now, Due: now.Add(dueIn)}
	t.rows[id], t.pending[id] = row, row
}

// Rows returns copies of all rows, ordered by id.
func (t *Table) Rows() []Row {
	t.mu.Lock()
	defer t.mu.Unlock()
	out := make([]Row, 0, len(t.rows))
	for _, row := range t.rows {
		out = append(out, *row)
	}
	slices.SortFunc(out, func(a, b Row) int { return strings.Compare(a.ID, b.ID) })
	return out
}

// Pending returns the number of pending rows.
func (t *Table) Pending() int {
	t.mu.Lock()
	defer t.mu.Unlock()
	return len(t.pending)
}

// ReadsTaken returns how many reads have been taken from the daily quota of
// the UTC day that holds at.
func (t *Table) ReadsTaken(at time.Time) int {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.reads[date(at)]
}

func date(t time.Time) string { return t.UTC().Format(time.DateOnly) }

func (r *Row) leased(now time.Time) bool {
	return r.LeasedUntil.After(now) && !r.LeasedUntil.After(now.Add(longestLease))
}

// Claim implements poller.Queue.
func (t *Table) Claim(_ context.Context, r poller.ClaimRequest) (poller.Claimed, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	now := time.Now()
	limit := r.Limit
	if r.PaceLine >= 0 {
		limit = min(limit, r.PaceLine-t.reads[date(now)])
	}
	var due []*Row
	for _, row := range t.pending {
		if !row.Due.After(now) && (!row.leased(now) || row.Lease == r.Lease) {
			due = append(due, row)
		}
	}
	slices.SortFunc(due, func(a, b *Row) int {
		if c := a.Due.Compare(b.Due); c != 0 {
			return c
		}
		return strings.Compare(a.ID, b.ID)
	})
	due = due[:max(0, min(limit, len(due)))]
	out := poller.Claimed{}
	for _, row := range due {
		if !row.LeasedUntil.IsZero() {
			row.LostLeases++
		}
		lease := r.For
		for range row.LostLeases {
			lease = min(4*lease, max(longestLease, r.For))
		}
		row.Lease, row.LeasedUntil = r.Lease, now.Add(lease)
		out.Jobs = append(out.Jobs, row.job(now))
	}
	if r.PaceLine >= 0 {
		t.reads[date(now)] += len(due)
	}
	out.Day, out.QuotaDate = t.day(now), date(now)
	return out, nil
}

func (r *Row) job(now time.Time) poller.Job {
	job := poller.Job{
		ID: r.ID, Late: now.Sub(r.Due), Answered: r.Status != "",
		ConsecutiveErrors: r.ConsecutiveErrors, NotFound: r.NotFound, LostLeases: r.LostLeases,
		Polls: r.Polls, Age: now.Sub(r.Created),
	}
	if !r.FailingSince.IsZero() {
		job.Failing = now.Sub(r.FailingSince)
	}
	return job
}

// Settle implements poller.Queue.
func (t *Table) Settle(_ context.Context, batch []poller.Settlement) ([]poller.Result, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	now := time.Now()
	out := make([]poller.Result, len(batch))
	for i, s := range batch {
		row := t.leasedRow(s.JobID, s.Lease)
		if row == nil {
			out[i].Outcome = poller.LeaseLost
			continue
		}
		row.settle(s, now)
		if row.State != poller.StatePending {
			out[i].State = row.State
			delete(t.pending, row.ID)
		}
	}
	return out, nil
}

// leasedRow returns the pending row under this lease, or nil. The lease may
// have expired: it is lost only when another claim took the row.
func (t *Table) leasedRow(id string, lease poller.LeaseID) *Row {
	row := t.pending[id]
	if row == nil || row.Lease != lease || row.LeasedUntil.IsZero() {
		return nil
	}
	return row
}

func (r *Row) settle(s poller.Settlement, now time.Time) {
	r.LeasedUntil, r.LostLeases = time.Time{}, 0
	if s.Polled {
		r.Polls++
	}
	if s.Status != "" {
		r.Status = s.Status
	}
	r.NotFound = s.NotFound
	if s.Class == "" {
		r.ConsecutiveErrors, r.FailingSince = 0, time.Time{}
	} else {
		r.ConsecutiveErrors++
		r.LastError = s.Error
		if r.FailingSince.IsZero() {
			r.FailingSince = now
		}
	}
	if s.State != "" {
		r.State, r.FinishedAt = s.State, now
		return
	}
	r.Due = now.Add(s.Delay)
}

// Release implements poller.Queue.
func (t *Table) Release(_ context.Context, quotaDate string, rows []poller.Release) ([]poller.Result, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	out := make([]poller.Result, len(rows))
	for i, r := range rows {
		row := t.leasedRow(r.JobID, r.Lease)
		if row == nil {
			out[i].Outcome = poller.LeaseLost
			continue
		}
		row.LeasedUntil = time.Time{}
		switch {
		case !r.Unread:
			row.Due = time.Now()
		case t.reads[quotaDate] > 0:
			t.reads[quotaDate]--
		}
	}
	return out, nil
}
