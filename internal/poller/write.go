package poller

import "time"

// write sends what waits to be settled or released, once it is enough, old
// enough, or nothing more is coming.
func (r *run) write(now time.Time, w *waker) {
	if r.inFlight == 0 && !r.seeking {
		for _, s := range r.guard.clear() { // too few to mean the key
			r.conclude(now, s)
		}
	}
	for len(r.batch) > 0 && r.writing < batchesInFlight {
		due := r.batchSince.Add(batchAge)
		if len(r.batch) < batchSize && now.Before(due) && (r.inFlight > 0 || r.batchSince.After(now)) {
			w.at(due)
			break
		}
		n := batchLength(r.batch)
		r.settle(r.batch[:n:n])
		r.batch = r.batch[n:]
	}
	if len(r.releases) > 0 && !r.releasing {
		if due := r.releaseSince.Add(batchAge); now.Before(due) && (r.inFlight > 0 || r.releaseSince.After(now)) {
			w.at(due)
			return
		}
		r.release(r.releases)
		r.releases = nil
	}
}

// batchLength returns how many of the settlements make the next batch.
func batchLength(waiting []Settlement) int {
	n, size := 0, 0
	for n < min(len(waiting), batchSize) {
		size += len(waiting[n].Final)
		if n > 0 && size > batchBytes {
			break
		}
		n++
	}
	return n
}

// settle writes one batch.
func (r *run) settle(batch []Settlement) {
	r.writing++
	go func() {
		ctx, cancel := r.finishing()
		defer cancel()
		results, err := r.table.Settle(ctx, batch)
		r.events <- func() {
			r.writing--
			r.wroteAt = time.Now()
			if err != nil {
				r.fail(KindDatabase, StoppedCanceled, err)
			}
			r.settled(r.wroteAt, batch, results)
		}
	}()
}

func (r *run) settled(now time.Time, batch []Settlement, results []Result) {
	for i, s := range batch {
		r.unwritten -= len(s.Final)
		if i >= len(results) {
			r.leaseRowDone(s.Lease) // the database failed; the lease runs out
			continue
		}
		result := results[i]
		if result.Error != nil {
			r.warnRefused(*result.Error)
		}
		switch {
		case result.Outcome == Written:
			r.leaseRowDone(s.Lease)
			r.count(now, s, result.State)
		case result.Outcome == Locked && r.mayAsk(now, s.Lease):
			r.batchAgain(now.Add(againPause), s)
		case s.Class == WriteRefused: // the error cannot be written either: the lease runs out
			r.leaseRowDone(s.Lease)
			r.sum.Errors[WriteRefused]++
		case result.Outcome == Refused:
			r.batchAgain(now, s.refused(*result.Error))
		default:
			r.leaseLost(s.Lease, s.JobID, result.Outcome)
		}
	}
	clear(batch) // batches to come share its array, which would hold the answers
}

// warnRefused names a row whose write the table refused. That announcements are
// refused is said once a run: no row is at fault.
func (r *run) warnRefused(refusal WriteError) {
	if refusal.Write == WriteAnnouncement {
		if r.unannounced {
			return
		}
		r.unannounced = true
	}
	r.log.WarnContext(r.ctx, "the table refuses to change a row", "job_id", refusal.JobID,
		"write", refusal.Write, "sqlstate", refusal.SQLState, "refused_by", refusal.Object)
}

// leaseLost counts a row whose lease could not be ended.
func (r *run) leaseLost(id LeaseID, jobID string, outcome Outcome) {
	r.leaseRowDone(id)
	r.sum.LostLeases++
	if outcome == Missing {
		r.log.WarnContext(r.ctx, "a claimed row is not found: it was deleted, or the index on job_id is broken", "job_id", jobID)
	}
}

// count adds a settled read to the summary. state is the one that the table
// has, empty while the row is pending.
func (r *run) count(now time.Time, s Settlement, state string) {
	if s.Polled {
		r.sum.Polled++
	}
	if s.Class != "" {
		r.sum.Errors[s.Class]++
	}
	switch {
	case state != "":
		r.sum.Finished[state]++
		r.log.DebugContext(r.ctx, "job finished", "job_id", s.JobID, "state", state)
	case s.Class == "":
		r.sum.Rescheduled++
		r.dueBy(now.Add(s.Delay))
	default:
		r.log.DebugContext(r.ctx, "job failing", "job_id", s.JobID, "error", s.Error)
		r.dueBy(now.Add(s.Delay))
	}
}

// release gives rows back.
func (r *run) release(rows []Release) {
	r.releasing = true
	byDate := map[string][]Release{}
	for _, row := range rows {
		date := r.leases[row.Lease].date
		byDate[date] = append(byDate[date], row)
	}
	go func() {
		ctx, cancel := r.finishing()
		defer cancel()
		for date, some := range byDate {
			results, err := r.table.Release(ctx, date, some)
			r.events <- func() {
				if err != nil {
					r.fail(KindDatabase, StoppedCanceled, err)
				}
				r.released(time.Now(), some, results)
			}
		}
		r.events <- func() { r.releasing = false }
	}()
}

func (r *run) released(now time.Time, rows []Release, results []Result) {
	r.wroteAt = now
	for i, row := range rows {
		if i >= len(results) {
			r.leaseRowDone(row.Lease)
			continue
		}
		switch result := results[i]; {
		case result.Outcome == Written:
			r.leaseRowDone(row.Lease)
			r.sum.Released++
			if row.Unread && r.ledger.limit > 0 {
				r.ledger.day.Reads--
			}
			r.dueBy(now)
		case result.Outcome == Locked && r.mayAsk(now, row.Lease):
			r.releases = append(r.releases, row)
			r.releaseSince = now.Add(againPause)
		case result.Outcome == Refused:
			r.leaseRowDone(row.Lease)
			r.sum.Errors[WriteRefused]++
			r.warnRefused(*result.Error)
		default:
			r.leaseLost(row.Lease, row.JobID, result.Outcome)
		}
	}
}

// batchAgain puts a settlement back, to be written from then on.
func (r *run) batchAgain(from time.Time, s Settlement) {
	if len(r.batch) == 0 {
		r.batchSince = from
	}
	r.batch = append(r.batch, s)
	r.unwritten += len(s.Final)
}

// mayAsk tells whether a row that is held is worth another attempt: one that
// the end of the time for settling cut off would fail the whole run.
func (r *run) mayAsk(now time.Time, id LeaseID) bool {
	l := r.leases[id]
	return l != nil && now.Before(l.end) && (r.closing.IsZero() || now.Add(againTime).Before(r.closing))
}

// leaseRowDone notes that one row of a lease is settled or released.
func (r *run) leaseRowDone(id LeaseID) {
	l := r.leases[id]
	if l == nil {
		return
	}
	if l.rows--; l.rows == 0 {
		delete(r.leases, id)
	}
}
