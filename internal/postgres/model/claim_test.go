package model

import (
	"context"

	"pgregory.net/rapid"

	"sumepoller/internal/poller"
)

// claimSome lets a claimant claim; sometimes it never sees the answer.
func (w *world) claimSome(t *rapid.T) {
	c := w.someone(t, nil)
	r := poller.ClaimRequest{
		Lease: w.newLease(), Limit: rapid.IntRange(1, 4).Draw(t, "limit"), For: leaseFor, Ceiling: w.ceiling,
	}
	if w.claim(c, r, false); rapid.IntRange(0, 3).Draw(t, "answered") == 0 {
		c.held = without(c.held, func(h poller.Hold) bool { return h.Lease == r.Lease })
		c.again = append(c.again, func() { w.claim(c, r, true) })
	}
}

// claim asks for rows and holds the answer against the model. again tells that
// the lease was asked for before.
func (w *world) claim(c *claimant, r poller.ClaimRequest, again bool) []poller.Job {
	got, err := w.ask(c, r)
	if err != nil {
		w.disagree("%s's claim does not answer in time: %v", c.name, err)
	}
	candidates, most := w.candidates(r, again)
	if most > 0 && len(got.Jobs) == 0 {
		w.disagree("%s's claim brought nothing, but %s could be had", c.name, candidates[0].ID)
	}
	if len(got.Jobs) > most {
		w.disagree("%s's claim brought %d rows, no more than %d could be had", c.name, len(got.Jobs), most)
	}
	w.take(c, r, got)
	if w.ceiling >= 0 && got.Day.Reads != w.reads {
		w.disagree("the claim told of %d reads, the model counts %d", got.Day.Reads, w.reads)
	}
	return got.Jobs
}

func (w *world) ask(c *claimant, r poller.ClaimRequest) (poller.Claimed, error) {
	ctx, cancel := context.WithTimeout(w.ctx, patience)
	defer cancel()
	return c.store.Claim(ctx, r)
}

// candidates are the rows that a claim may bring, and how many at most: those
// of an earlier attempt, or others as far as the day's allowance goes.
func (w *world) candidates(r poller.ClaimRequest, again bool) (rows []*row, most int) {
	if again {
		rows = w.which(func(row *row) bool { return row.recallable(r.Lease) })
	}
	if len(rows) > 0 {
		return rows, min(r.Limit, len(rows))
	}
	rows = w.which((*row).claimable)
	most = min(r.Limit, len(rows))
	if r.Ceiling >= 0 {
		most = max(0, min(most, r.Ceiling-w.reads))
	}
	return rows, most
}

// take leases the rows of an answer in the model.
func (w *world) take(c *claimant, r poller.ClaimRequest, got poller.Claimed) {
	w.t.Logf("%s claims under %x: %v", c.name, r.Lease[14:], got.Jobs)
	if w.day == "" {
		w.day = got.Day.Date
	}
	if got.Day.Date != w.day {
		panic(midnight{})
	}
	seen := map[string]bool{}
	for i, job := range got.Jobs {
		row := w.row(job.ID)
		switch {
		case seen[job.ID]:
			w.disagree("%s claimed %s twice at once", c.name, job.ID)
		case !row.claimable() && !row.recallable(r.Lease):
			w.disagree("%s claimed %s, which is not to be had: %+v, locked %v", c.name, job.ID, row.record, row.locked)
		case i > 0 && job.Late > got.Jobs[i-1].Late:
			w.disagree("%s claimed %s before an older one", c.name, got.Jobs[i-1].ID)
		}
		seen[job.ID] = true
		if row.claim(r.Lease, r.For) && r.Ceiling >= 0 {
			w.reads++
		}
		want := poller.Job{
			ID: job.ID, Answered: row.Status != unanswered, ConsecutiveErrors: row.Errors,
			LastError: row.LastError, LostLeases: row.Lost, Late: job.Late, Failing: job.Failing,
		}
		if job != want || (job.Failing > 0) != row.Failing || job.Late < 0 {
			w.disagree("the claim told %+v, want %+v", job, want)
		}
		hold := poller.Release{JobID: job.ID, Lease: r.Lease}
		c.held = append(without(c.held, func(h poller.Hold) bool { return h == hold }), hold)
	}
	if r.Ceiling >= 0 && w.reads > r.Ceiling {
		w.disagree("%d reads are taken, over the day's %d", w.reads, r.Ceiling)
	}
}

// without returns the holds of which is does not hold.
func without(holds []poller.Release, is func(poller.Hold) bool) []poller.Release {
	var rest []poller.Release
	for _, h := range holds {
		if !is(h) {
			rest = append(rest, h)
		}
	}
	return rest
}
