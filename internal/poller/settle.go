package poller

import (
	"context"
	"time"
)

// write starts the writes that the writer decides on.
func (r *run) write(now time.Time, w *waker) {
	quiet := r.minute.inFlight == 0
	if quiet && !r.seeker.busy {
		for _, s := range r.guard.clear() { // too few to show that the key is refused
			r.conclude(now, s)
		}
	}
	for {
		batch, at := r.writer.nextBatch(now, quiet)
		w.at(at)
		if len(batch) == 0 {
			break
		}
		r.settle(batch)
	}
	rows, at := r.writer.nextReleases(now, quiet)
	w.at(at)
	if len(rows) > 0 {
		r.release(rows)
	}
}

// settle writes one batch.
func (r *run) settle(batch []Settlement) {
	r.background(func(ctx context.Context) func() {
		results, err := r.table.Settle(ctx, batch)
		return func() {
			if err != nil {
				r.fail(KindDatabase, StoppedCanceled, err)
			}
			r.settled(time.Now(), batch, results)
		}
	})
}

// settled takes the results of a batch. Rows without one keep their lease until
// it expires: the database did not answer for them.
func (r *run) settled(now time.Time, batch []Settlement, results []Result) {
	r.seeker.wroteAt = now
	r.writer.settled(batch)
	for i, s := range batch {
		if i >= len(results) {
			r.leases.rowDone(s.Lease)
			continue
		}
		r.settledRow(now, s, results[i])
	}
	clear(batch) // later batches share its array, which would keep the answers in memory
}

func (r *run) settledRow(now time.Time, s Settlement, result Result) {
	if result.Error != nil {
		r.warnings.refused(r.ctx, *result.Error)
	}
	if result.Outcome == Locked && r.mayRetry(now, s.Lease) {
		r.writer.settle(now.Add(retryPause), s)
		return
	}
	if result.Outcome == Refused && s.Class != WriteRefused {
		r.writer.settle(now, s.refused(*result.Error))
		return
	}
	r.leases.rowDone(s.Lease)
	if result.Outcome == Written {
		r.count(now, s, result.State)
	} else if s.Class == WriteRefused { // the table refuses to keep the error too: the row stays leased until the lease expires
		r.sum.Errors[WriteRefused]++
	} else {
		r.leaseLost(s.JobID, result.Outcome)
	}
}

// count adds a settled read to the summary. state is the row's, empty while it
// is pending.
func (r *run) count(now time.Time, s Settlement, state string) {
	r.sum.settled(s, state)
	if state != "" {
		r.log.DebugContext(r.ctx, "job finished", "job_id", s.JobID, "state", state)
		return
	}
	r.seeker.dueBy(now.Add(s.Delay))
	if s.Class != "" {
		r.log.DebugContext(r.ctx, "job failing", "job_id", s.JobID, "error", s.Error)
	}
}

// release gives rows back.
func (r *run) release(rows []Release) {
	byDate := map[string][]Release{}
	for _, row := range rows {
		date := r.leases[row.Lease].date
		byDate[date] = append(byDate[date], row)
	}
	r.background(func(ctx context.Context) func() {
		for date, some := range byDate {
			results, err := r.table.Release(ctx, date, some)
			r.events <- func() {
				if err != nil {
					r.fail(KindDatabase, StoppedCanceled, err)
				}
				r.released(time.Now(), some, results)
			}
		}
		return func() { r.writer.releasing = false }
	})
}

// released takes the results of a release.
func (r *run) released(now time.Time, rows []Release, results []Result) {
	r.seeker.wroteAt = now
	for i, row := range rows {
		if i >= len(results) {
			r.leases.rowDone(row.Lease)
			continue
		}
		result := results[i]
		if result.Outcome == Locked && r.mayRetry(now, row.Lease) {
			r.writer.release(now.Add(retryPause), row)
			continue
		}
		r.leases.rowDone(row.Lease)
		switch result.Outcome {
		case Written:
			r.sum.Released++
			if row.Unread {
				r.quota.gaveBack()
			}
			r.seeker.dueBy(now)
		case Refused:
			r.sum.Errors[WriteRefused]++
			r.warnings.refused(r.ctx, *result.Error)
		default:
			r.leaseLost(row.JobID, result.Outcome)
		}
	}
}

// mayRetry reports whether a locked row is worth another attempt. An attempt
// that the end of the time for writes cuts off would fail the whole run.
func (r *run) mayRetry(now time.Time, id LeaseID) bool {
	return r.leases.runs(now, id) && r.deadlines.leaves(now, retryTime)
}

// leaseLost counts a row whose lease could not be ended.
func (r *run) leaseLost(jobID string, outcome Outcome) {
	r.sum.LostLeases++
	if outcome == Missing {
		r.warnings.missing(r.ctx, jobID)
	}
}
