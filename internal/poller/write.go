package poller

import "time"

// write sends what waits to be settled or released, once it is enough, old
// enough, or nothing more is coming.
func (r *run) write(now time.Time, w *waker) {
	if r.inFlight == 0 && len(r.forbidden) > 0 && !r.seeking {
		r.settleForbidden(now) // fewer than it takes to suspect the key
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
	if len(r.holds) > 0 && !r.releasing {
		if due := r.holdsSince.Add(batchAge); now.Before(due) && (r.inFlight > 0 || r.holdsSince.After(now)) {
			w.at(due)
			return
		}
		r.release(r.holds)
		r.holds = nil
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
		outcomes, err := r.table.Settle(ctx, batch)
		r.events <- func() {
			r.writing--
			r.wroteAt = time.Now()
			if err != nil {
				r.fail(FailedDatabase, Canceled, err)
			}
			r.settled(r.wroteAt, batch, outcomes)
		}
	}()
}

func (r *run) settled(now time.Time, batch []Settlement, outcomes []Outcome) {
	for i, s := range batch {
		r.unwritten -= len(s.Final)
		switch {
		case i >= len(outcomes):
			r.let(s.Lease) // the database failed; the lease runs out
		case outcomes[i] == Done:
			r.let(s.Lease)
			r.count(now, s)
		case outcomes[i] == Again && r.mayAsk(now, s.Lease):
			r.batchAgain(now, s)
		default:
			r.let(s.Lease)
			r.sum.LostLeases++
		}
	}
	clear(batch) // batches to come share its array, which would hold the answers
}

// count adds a settled read to the summary.
func (r *run) count(now time.Time, s Settlement) {
	if s.Polled {
		r.sum.Polled++
	}
	if s.Error != "" {
		r.sum.Errors[classOf(s.Error)]++
	}
	switch {
	case s.State != "":
		r.sum.Finished[s.State]++
		r.log.DebugContext(r.ctx, "job finished", "job_id", s.JobID, "state", s.State)
	default:
		if s.Error == "" {
			r.sum.Rescheduled++
		} else {
			r.log.DebugContext(r.ctx, "job failing", "job_id", s.JobID, "error", s.Error)
		}
		r.dueBy(now.Add(s.Delay))
	}
}

// release gives rows back.
func (r *run) release(holds []Hold) {
	r.releasing = true
	byDate := map[string][]Hold{}
	for _, h := range holds {
		byDate[r.leases[h.Lease].date] = append(byDate[r.leases[h.Lease].date], h)
	}
	go func() {
		ctx, cancel := r.finishing()
		defer cancel()
		for date, some := range byDate {
			outcomes, err := r.table.Release(ctx, date, some)
			r.events <- func() {
				if err != nil {
					r.fail(FailedDatabase, Canceled, err)
				}
				r.released(time.Now(), some, outcomes)
			}
		}
		r.events <- func() { r.releasing = false }
	}()
}

func (r *run) released(now time.Time, holds []Hold, outcomes []Outcome) {
	r.wroteAt = now
	for i, h := range holds {
		switch {
		case i >= len(outcomes):
			r.let(h.Lease)
		case outcomes[i] == Done:
			r.let(h.Lease)
			r.sum.Released++
			if h.Unread && r.ledger.limit > 0 {
				r.ledger.day.Reads--
			}
			r.dueBy(now)
		case outcomes[i] == Again && r.mayAsk(now, h.Lease):
			r.holds = append(r.holds, h)
			r.holdsSince = now.Add(againPause)
		default:
			r.let(h.Lease)
			r.sum.LostLeases++
		}
	}
}

// batchAgain puts back a settlement whose row another program holds.
func (r *run) batchAgain(now time.Time, s Settlement) {
	if len(r.batch) == 0 {
		r.batchSince = now.Add(againPause)
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

// let takes note that one row of a lease is done with.
func (r *run) let(id LeaseID) {
	l := r.leases[id]
	if l == nil {
		return
	}
	if l.rows--; l.rows == 0 {
		delete(r.leases, id)
	}
}
