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
		requests[i] = poller.ClaimRequest{Lease: w.newLease(), Limit: rapid.IntRange(1, 4).Draw(t, "limit"), For: leaseFor, Ceiling: w.ceiling}
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
	for _, err := range errs {
		if err != nil {
			w.disagree("at the same time: %v", err)
		}
	}
	w.t.Logf("at the same time: third %v", third.outcomes)
	w.judge(third, got, after)
	for i, claimant := range []*claimant{a, b} {
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
	release  []poller.Release
	outcomes []poller.Outcome
	ask      func() error
}

func (w *world) drawThird(t *rapid.T, c *claimant) *third {
	th := &third{claimant: c, ask: func() error { return nil }}
	if len(c.held) == 0 {
		return th
	}
	holds := w.part(t, c)
	if rapid.Bool().Draw(t, "releases") {
		th.release = drawUnread(t, holds)
		th.ask = func() (err error) {
			th.outcomes, err = c.store.Release(w.ctx, w.day, th.release)
			return err
		}
		return th
	}
	th.settle = drawBatch(t, holds)
	th.ask = func() (err error) {
		th.outcomes, err = c.store.Settle(w.ctx, th.settle)
		return err
	}
	return th
}

// judge holds the third's outcomes against the model, row by row, and leaves
// the model as it was before the claims of the race. after is what the older
// worker did meanwhile.
func (w *world) judge(th *third, got [2]poller.Claimed, after func()) {
	claimed := map[string]bool{}
	for _, g := range got {
		for _, j := range g.Jobs {
			claimed[j.ID] = true
		}
	}
	locked := w.which(func(r *row) bool { return r.locked })
	after()
	for i, o := range th.outcomes {
		var r *row
		var lease poller.LeaseID
		var state string
		if th.settle != nil {
			r, lease, state = w.row(th.settle[i].JobID), th.settle[i].Lease, th.settle[i].State
		} else {
			r, lease = w.row(th.release[i].JobID), th.release[i].Lease
		}
		want, _ := r.outcome(lease, state)
		meanwhile := r.claimable() && claimed[r.ID] // another took it from an overdue lease
		switch {
		case o == want:
		case o == poller.Again && r.Lease == lease && (slices.Contains(locked, r) || meanwhile):
		case o == poller.Lost && want == poller.Done && meanwhile:
		default:
			w.disagree("at the same time %s came to %v for %s, want %v: %+v", th.claimant.name, o, r.ID, want, r.record)
		}
		if th.settle != nil {
			w.settled(th.claimant, th.settle[i], o)
		} else {
			w.released(th.claimant, th.release[i], o)
		}
	}
}
