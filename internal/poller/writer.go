package poller

import "time"

// writer decides when the settlements and releases of a run are written, and
// how many at once.
type writer struct {
	settlements []Settlement // that wait
	settleFrom  time.Time    // when the first of them began to wait, or may be tried again
	settling    int          // batches that are being written
	bytes       int          // of terminal answers, waiting or being written

	releases    []Release // that wait
	releaseFrom time.Time // as settleFrom
	releasing   bool      // releases are being written
}

// settle adds a settlement that may be written from then on.
func (w *writer) settle(from time.Time, s Settlement) {
	if len(w.settlements) == 0 {
		w.settleFrom = from
	}
	w.settlements = append(w.settlements, s)
	w.bytes += len(s.Final)
}

// release adds a release that may be written from then on.
func (w *writer) release(from time.Time, r Release) {
	if len(w.releases) == 0 {
		w.releaseFrom = from
	}
	w.releases = append(w.releases, r)
}

// nextBatch returns the settlements to write now, or when to ask again. quiet
// means that no read is in flight, so that waiting makes no batch larger.
func (w *writer) nextBatch(now time.Time, quiet bool) (batch []Settlement, at time.Time) {
	if len(w.settlements) == 0 || w.settling >= batchesInFlight {
		return nil, time.Time{}
	}
	if len(w.settlements) < batchSize && !ready(now, w.settleFrom, quiet) {
		return nil, w.settleFrom.Add(batchAge)
	}
	n := batchLength(w.settlements)
	batch, w.settlements = w.settlements[:n:n], w.settlements[n:]
	w.settling++
	return batch, time.Time{}
}

// nextReleases returns the releases to write now, or when to ask again.
func (w *writer) nextReleases(now time.Time, quiet bool) (rows []Release, at time.Time) {
	if len(w.releases) == 0 || w.releasing {
		return nil, time.Time{}
	}
	if !ready(now, w.releaseFrom, quiet) {
		return nil, w.releaseFrom.Add(batchAge)
	}
	rows, w.releases = w.releases, nil
	w.releasing = true
	return rows, time.Time{}
}

// ready reports whether what waits since from is written now.
func ready(now, from time.Time, quiet bool) bool {
	return !now.Before(from.Add(batchAge)) || quiet && !now.Before(from)
}

// settled records that a batch was written, with or without success.
func (w *writer) settled(batch []Settlement) {
	w.settling--
	for _, s := range batch {
		w.bytes -= len(s.Final)
	}
}

// full reports whether nothing should be claimed before more is written.
func (w *writer) full() bool { return w.bytes >= unwrittenMax }

// idle reports whether nothing waits or is being written.
func (w *writer) idle() bool {
	return len(w.settlements) == 0 && w.settling == 0 && len(w.releases) == 0 && !w.releasing
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
