package model

import (
	"slices"
	"sync"

	"pgregory.net/rapid"

	"sumepoller/internal/poller"
)

// race lets two claimants claim while a third settles or releases, and the
// older worker perhaps commits. The outcomes decide in what order the rules
// have them: who wrote a row first is seen by who got it.
func (w *world) race(t *rapid.T) {
	a, b, c := w.claimants[0], w.claimants[1], w.claimants[2]
	requests := [2]poller.ClaimRequest{}
	for i := range requests {
		requests[i] = poller.ClaimRequest{Lease: w.newLease(), Limit: rapid.IntRange(1, 4).Draw(t, "limit"), For: leaseFor, PaceLine: w.ceiling}
	}
	third := w.drawThird(t, c)
	var older func() error
	after := func() {}
	if w.writer != nil && rapid.Bool().Draw(t, "older worker ends") {
		after, older = w.draft(t)
	}

	var got [2]poller.Claimed
	var errs [4]error
	var all sync.WaitGroup
	all.Go(func() { got[0], errs[0] = w.ask(a, requests[0]) })
	all.Go(func() { got[1], errs[1] = w.ask(b, requests[1]) })
	all.Go(func() { errs[2] = third.ask() })
	all.Go(func() {
		if older != nil {
			errs[3] = older()
		}
	})
	all.Wait()
	w.t.Logf("at the same time: %s under %x: %+v, %s under %x: %+v, %s: %+v %+v: %+v", a.name, requests[0].Lease[14:], got[0],
		b.name, requests[1].Lease[14:], got[1], c.name, third.settle, third.release.rows, third.results)
	for _, err := range errs {
		if err != nil {
			w.disagree("at the same time: %v", err)
		}
	}
	due := w.which((*row).claimable)
	w.judge(third, got, after)
	due = append(due, w.which((*row).claimable)...)
	for i, claimant := range []*claimant{a, b} {
		w.named(claimant, requests[i], got[i].Refused, due)
		w.take(claimant, requests[i], got[i])
		if len(got[i].Jobs) > requests[i].Limit {
			w.disagree("%s claimed %d rows, asked for %d", claimant.name, len(got[i].Jobs), requests[i].Limit)
		}
	}
}

// third is what the third claimant does in a race.
type third struct {
	claimant *claimant
	settle   []poller.Settlement // or
	release  releases
	results  []poller.Result
	ask      func() error
}

func (w *world) drawThird(t *rapid.T, c *claimant) *third {
	th := &third{claimant: c, ask: func() error { return nil }}
	if len(c.held) == 0 {
		return th
	}
	if rapid.Bool().Draw(t, "releases") {
		th.release = w.drawReleases(t, c)
		date := w.dateOf(th.release.charged)
		th.ask = func() (err error) {
			th.results, err = c.store.Release(w.ctx, date, th.release.rows)
			return err
		}
		return th
	}
	th.settle = w.drawSettlements(t, c)
	th.ask = func() (err error) {
		th.results, err = c.store.Settle(w.ctx, th.settle)
		return err
	}
	return th
}

// judge holds the third's results against the model, row by row, and leaves
// the model as it was before the claims of the race. after is what the older
// worker did meanwhile.
func (w *world) judge(th *third, got [2]poller.Claimed, after func()) {
	claimed, tried := map[string]bool{}, map[string]bool{}
	for _, g := range got {
		for _, j := range g.Jobs {
			claimed[j.ID], tried[j.ID] = true, true
		}
		for _, r := range g.Refused {
			tried[r.JobID] = true
		}
	}
	locked := w.which(func(r *row) bool { return r.locked })
	after()
	for i, got := range th.results {
		var r *row
		var lease poller.LeaseID
		var want poller.Result
		if th.settle != nil {
			s := th.settle[i]
			r, lease = w.row(s.JobID), s.Lease
			want, _ = r.settlement(s)
		} else {
			b := th.release.rows[i]
			r, lease = w.row(b.JobID), b.Lease
			want, _, _ = r.release(b.Lease, b.Unread)
		}
		// A claim locked the row, whose lease is overdue, and perhaps took it.
		locks, takes := r.claimable() && tried[r.ID], r.claimable() && claimed[r.ID]
		switch {
		case got.Outcome == want.Outcome:
			w.same(th.claimant, []poller.Result{got}, []poller.Result{want})
		case got.Outcome == poller.Locked && r.Lease == lease && (slices.Contains(locked, r) || locks):
		case got.Outcome == poller.LeaseLost && (want.Outcome == poller.Written || want.Outcome == poller.Refused) && takes:
		default:
			w.disagree("at the same time %s came to %+v for %s, want %+v: %+v", th.claimant.name, got, r.ID, want, r.record)
		}
		if th.settle != nil {
			w.settled(th.claimant, th.settle[i], got)
		} else {
			w.released(th.claimant, th.release.rows[i], th.release.charged, got)
		}
	}
}
