package poller

import "time"

// deadlines are the times at which a run ends its claims, its reads and its
// writes, in this order. The zero time means no end.
type deadlines struct {
	claims time.Time
	reads  time.Time
	writes time.Time
}

// newDeadlines returns the deadlines of a run with this time budget, whose
// invocation began at started and is cut off at end (zero: never).
func newDeadlines(started time.Time, budget time.Duration, end time.Time) deadlines {
	d := deadlines{claims: started.Add(budget)}
	if end.IsZero() {
		return d
	}
	reserve := Reserve(end.Sub(started))
	d.reads = end.Add(-reserve)
	d.writes = end.Add(-reserve / 4)
	if d.reads.Before(d.claims) {
		d.claims = d.reads
	}
	return d
}

// write returns when a call to the database that starts now has to end.
func (d deadlines) write(now time.Time) time.Time {
	const most = 10 * time.Second
	end := now.Add(most)
	if !d.writes.IsZero() && d.writes.Before(end) {
		return d.writes
	}
	return end
}

// leaves reports whether this much time is left for writes.
func (d deadlines) leaves(now time.Time, time time.Duration) bool {
	return d.writes.IsZero() || now.Add(time).Before(d.writes)
}

// Reserve returns the end of a function's time that is kept for settling and
// the summary: the lesser of 3 s and a fifth of the limit.
func Reserve(limit time.Duration) time.Duration {
	return min(3*time.Second, max(limit, 0)/5)
}
