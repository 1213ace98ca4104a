// Package simulation is a table and an API in memory, on the clock of the
// time package: in a bubble of testing/synctest a whole day of the loop takes
// seconds. It keeps the promises of poller.Queue and poller.Outlook, so that
// the rules can be watched over days; what PostgreSQL does is tested on a
// PostgreSQL.
package simulation

import (
	"context"
	"sort"
	"sync"
	"time"

	"sumepoller/internal/poller"
)

// longestLease is the longest lease there is; one that ends later counts as over.
const longestLease = 15 * time.Minute

// Row is one row of the simulated table.
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

// Table is the simulated table. It is safe for concurrent use.
type Table struct {
	mu    sync.Mutex
	rows  map[string]*Row
	alive map[string]*Row // the pending ones
	reads map[string]int  // by UTC day
}

// NewTable returns an empty table.
func NewTable() *Table {
	return &Table{rows: map[string]*Row{}, alive: map[string]*Row{}, reads: map[string]int{}}
}

// Add inserts a pending row that is due after a while.
func (t *Table) Add(id string, dueIn time.Duration) {
	t.mu.Lock()
	defer t.mu.Unlock()
	now := time.Now()
	row := &Row{ID: id, State: poller.StatePending, Created: now, Due: now.Add(dueIn)}
	t.rows[id], t.alive[id] = row, row
}

// Rows returns copies of all rows, by id.
func (t *Table) Rows() []Row {
	t.mu.Lock()
	defer t.mu.Unlock()
	out := make([]Row, 0, len(t.rows))
	for _, row := range t.rows {
		out = append(out, *row)
	}
	sort.Slice(out, func(i, j int) bool { return out[i].ID < out[j].ID })
	return out
}

// ReadsTaken returns what the day's ledger counts for the UTC day of at.
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
	for _, row := range t.alive {
		if !row.Due.After(now) && (!row.leased(now) || row.Lease == r.Lease) {
			due = append(due, row)
		}
	}
	sort.Slice(due, func(i, j int) bool {
		return due[i].Due.Before(due[j].Due) || due[i].Due.Equal(due[j].Due) && due[i].ID < due[j].ID
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
		row := t.alive[s.JobID]
		if row == nil || row.Lease != s.Lease || row.LeasedUntil.IsZero() {
			out[i].Outcome = poller.LeaseLost
			continue
		}
		row.settle(s, now)
		if row.State != poller.StatePending {
			out[i].State = row.State
			delete(t.alive, row.ID)
		}
	}
	return out, nil
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
func (t *Table) Release(_ context.Context, day string, rows []poller.Release) ([]poller.Result, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	out := make([]poller.Result, len(rows))
	for i, h := range rows {
		row := t.alive[h.JobID]
		if row == nil || row.Lease != h.Lease || row.LeasedUntil.IsZero() {
			out[i].Outcome = poller.LeaseLost
			continue
		}
		row.LeasedUntil = time.Time{}
		switch {
		case !h.Unread:
			row.Due = time.Now()
		case t.reads[day] > 0:
			t.reads[day]--
		}
	}
	return out, nil
}
