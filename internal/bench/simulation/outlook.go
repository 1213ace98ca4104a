package simulation

import (
	"context"
	"encoding/json"
	"time"

	"sumepoller/internal/poller"
)

// NextDue implements poller.Outlook.
func (t *Table) NextDue(_ context.Context, own []poller.LeaseID) (time.Duration, bool, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	now := time.Now()
	var next time.Time
	for _, row := range t.alive {
		at := row.Due
		if row.leased(now) {
			if contains(own, row.Lease) {
				continue
			}
			at = row.LeasedUntil
		}
		if next.IsZero() || at.Before(next) {
			next = at
		}
	}
	return next.Sub(now), !next.IsZero(), nil
}

func contains(own []poller.LeaseID, id poller.LeaseID) bool {
	for _, o := range own {
		if o == id {
			return true
		}
	}
	return false
}

// Today implements poller.Outlook.
func (t *Table) Today(context.Context) (poller.Day, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.day(time.Now()), nil
}

func (t *Table) day(now time.Time) poller.Day {
	now = now.UTC()
	return poller.Day{Date: date(now), Elapsed: now.Sub(now.Truncate(24 * time.Hour)), Reads: t.reads[date(now)]}
}

// Backlog implements poller.Outlook.
func (t *Table) Backlog(context.Context) (poller.Backlog, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	now := time.Now()
	b := poller.Backlog{Pending: len(t.alive), ReadsToday: t.reads[date(now)]}
	for _, row := range t.alive {
		b.OldestPending = max(b.OldestPending, now.Sub(row.Created))
		if !row.FailingSince.IsZero() && now.Sub(row.FailingSince) > 30*time.Minute {
			b.Failing++
		}
		if !row.Due.After(now) && !row.leased(now) {
			b.Due++
			b.OldestDue = max(b.OldestDue, now.Sub(row.Due))
		}
	}
	return b, nil
}

// body is a terminal answer's text.
func body(id, status string) []byte {
	b, _ := json.Marshal(map[string]any{"job_id": id, "sume_status": status, "terminal": true})
	return b
}
