package model

import (
	"context"
	"slices"

	"pgregory.net/rapid"

	"sumepoller/internal/poller"
)

// claimSome lets a claimant claim; sometimes it never sees the answer.
func (w *world) claimSome(t *rapid.T) {
	c := w.someone(t, nil)
	r := poller.ClaimRequest{
		Lease: w.newLease(), Limit: rapid.IntRange(1, 4).Draw(t, "limit"), For: leaseFor, PaceLine: w.ceiling,
	}
	if w.claim(c, r, false); rapid.IntRange(0, 3).Draw(t, "answered") == 0 {
		c.held = without(c.held, func(h hold) bool { return h.lease == r.Lease })
		c.again = append(c.again, func() { w.claim(c, r, true) })
	}
}

// claim asks for rows and compares the answer with the model. again says that
// the lease was asked for before.
func (w *world) claim(c *claimant, r poller.ClaimRequest, again bool) []poller.Job {
	got, err := w.ask(c, r)
	if err != nil {
		w.disagree("%s's claim: %v", c.name, err)
	}
	w.t.Logf("%s claims under %x: %+v", c.name, r.Lease[14:], got)
	found, writable, most := w.candidates(c, r, again)
	w.named(c, r, got.Refused, found)
	if most > 0 && len(got.Jobs) == 0 {
		w.disagree("%s's claim brought nothing, but %s could be had", c.name, writable[0].ID)
	}
	if len(got.Jobs) > most {
		w.disagree("%s's claim brought %d rows, no more than %d could be had", c.name, len(got.Jobs), most)
	}
	if len(got.Jobs) == 0 && (r.PaceLine < 0 || w.readsToday() < r.PaceLine) {
		for _, row := range w.which((*row).claimable) {
			if !c.leftOut[row.ID] {
				w.disagree("%s's claim brought nothing and did not name %s, which the table refuses: %v", c.name, row.ID, row.refusals)
			}
		}
	}
	w.take(c, r, got)
	if w.ceiling >= 0 && got.Day.Reads != w.readsToday() {
		w.disagree("the claim returned %d reads, the model counts %d", got.Day.Reads, w.readsToday())
	}
	return got.Jobs
}

func (w *world) ask(c *claimant, r poller.ClaimRequest) (poller.Claimed, error) {
	ctx, cancel := context.WithTimeout(w.ctx, patience)
	defer cancel()
	return c.store.Claim(ctx, r)
}

// candidates are the rows that a claim may find, those that it may bring, and
// how many of these at most: rows of an earlier attempt, or others as far as
// the daily quota goes.
func (w *world) candidates(c *claimant, r poller.ClaimRequest, again bool) (found, writable []*row, most int) {
	takes := func(row *row) bool { return row.claimRefusal(r.Lease) == nil }
	if again {
		found = w.which(func(row *row) bool { return row.recallable(r.Lease) && !c.leftOut[row.ID] })
		if writable = only(found, takes); len(writable) > 0 {
			return found, writable, min(r.Limit, len(writable))
		}
	}
	for _, row := range w.which(func(row *row) bool { return row.claimable() && !c.leftOut[row.ID] }) {
		if !slices.Contains(found, row) {
			found = append(found, row)
		}
		if takes(row) {
			writable = append(writable, row)
		}
	}
	most = min(r.Limit, len(writable))
	if r.PaceLine >= 0 {
		most = max(0, min(most, r.PaceLine-w.readsToday()))
	}
	return found, writable, most
}

// take leases the rows of an answer in the model.
func (w *world) take(c *claimant, r poller.ClaimRequest, got poller.Claimed) {
	if got.Day.Date != w.date {
		panic(midnight{})
	}
	seen := map[string]bool{}
	// A lease whose end a clock's jump moved names no day, nor does one of just
	// after midnight that a check moved.
	jumped := got.Day.Elapsed < longest
	for _, job := range got.Jobs {
		jumped = jumped || w.row(job.ID).ahead
	}
	for i, job := range got.Jobs {
		row := w.row(job.ID)
		switch {
		case seen[job.ID]:
			w.disagree("%s claimed %s twice at once", c.name, job.ID)
		case !row.claimable() && !row.recallable(r.Lease):
			w.disagree("%s claimed %s, which is not to be had: %+v, locked %v", c.name, job.ID, row.record, row.locked)
		case row.claimRefusal(r.Lease) != nil:
			w.disagree("%s claimed %s, which the table refuses: %v", c.name, job.ID, row.refusals)
		case c.leftOut[job.ID]:
			w.disagree("%s claimed %s, which the table refused before", c.name, job.ID)
		case i > 0 && w.older(row, w.row(got.Jobs[i-1].ID)):
			w.disagree("%s claimed %s before an older one", c.name, got.Jobs[i-1].ID)
		}
		seen[job.ID] = true
		if row.claim(r.Lease, r.For, w.today()) && r.PaceLine >= 0 {
			w.reads[w.date]++
		}
		want := poller.Job{
			ID: job.ID, Answered: row.Status != unanswered, ConsecutiveErrors: row.Errors, NotFound: row.NotFound,
			LostLeases: row.Lost, Polls: row.Polls, Late: job.Late, Failing: job.Failing, Age: job.Age,
		}
		failing := job.Failing > 0 || row.Failing && w.failsFromNowOn(job.ID)
		if job != want || failing != row.Failing || job.Late < 0 || job.Age < 0 {
			w.disagree("the claim returned %+v, want %+v", job, want)
		}
		if date := w.dateOf(row.charged); got.QuotaDate != date && !jumped {
			w.disagree("the reads are said to be taken from %s, want %s", got.QuotaDate, date)
		}
		h := hold{id: job.ID, lease: r.Lease, charged: charge{got.QuotaDate, w.passed}}
		c.held = append(without(c.held, func(h hold) bool { return h.id == job.ID && h.lease == r.Lease }), h)
	}
	if r.PaceLine >= 0 && w.readsToday() > r.PaceLine {
		w.disagree("%d reads are taken, over the day's %d", w.readsToday(), r.PaceLine)
	}
}

// failsFromNowOn reports whether the row has been failing for no time at all: a
// clock that was set back a little puts its failing_since after the claim.
func (w *world) failsFromNowOn(id string) (yes bool) {
	const since = `SELECT failing_since > now() - interval '1 second' FROM video_jobs WHERE job_id = $1`
	if err := w.pool.QueryRow(w.ctx, since, id).Scan(&yes); err != nil {
		w.disagree("%s's failing_since: %v", id, err)
	}
	return yes
}

// older reports whether a was due before b. What moved since the table was
// looked at is not known.
func (w *world) older(a, b *row) bool { return !a.moved && !b.moved && a.place < b.place }

// without returns the holds of which is does not hold.
func without(holds []hold, is func(hold) bool) []hold {
	return slices.DeleteFunc(slices.Clone(holds), is)
}

// only returns the rows of which is holds.
func only(rows []*row, is func(*row) bool) (some []*row) {
	for _, r := range rows {
		if is(r) {
			some = append(some, r)
		}
	}
	return some
}
