package pollertest

import (
	"context"
	"slices"
	"time"

	"sumepoller/internal/poller"
)

// NextDue implements poller.Schedule.
func (t *Table) NextDue(_ context.Context, own []poller.LeaseID) (time.Duration, bool, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	now := time.Now()
	var next time.Time
	for _, row := range t.pending {
		at := row.Due
		if row.leased(now) {
			if slices.Contains(own, row.Lease) {
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

// Today implements poller.Schedule.
func (t *Table) Today(context.Context) (poller.Day, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.day(time.Now()), nil
}

func (t *Table) day(now time.Time) poller.Day {
	now = now.UTC()
	return poller.Day{Date: date(now), Elapsed: now.Sub(now.Truncate(24 * time.Hour)), Reads: t.reads[date(now)]}
}

// Backlog implements poller.Schedule.
func (t *Table) Backlog(context.Context) (poller.Backlog, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	now := time.Now()
	b := poller.Backlog{Pending: len(t.pending), ReadsToday: t.reads[date(now)]}
	for _, row := range t.pending {
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
