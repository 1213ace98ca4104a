package model

import (
	"slices"

	"pgregory.net/rapid"

	"sumepoller/internal/poller"
)

// hold is a row that a claimant believes to hold.
type hold struct {
	id      string
	lease   poller.LeaseID
	charged charge // as the claim returned it
}

// settleSome settles some of what a claimant believes to hold, and the errors
// of what the table refused before; sometimes it never sees the answer.
func (w *world) settleSome(t *rapid.T) {
	c := w.someone(t, func(c *claimant) bool { return len(c.held)+len(c.declined) > 0 })
	batch := w.drawSettlements(t, c)
	if w.settle(c, batch); rapid.IntRange(0, 3).Draw(t, "answered") == 0 {
		c.forget(batch)
		c.again = append(c.again, func() { w.settle(c, batch) })
	}
}

// drawSettlements takes what is to be settled out of a claimant's hands.
func (w *world) drawSettlements(t *rapid.T, c *claimant) []poller.Settlement {
	batch := c.declined
	c.declined = nil
	if len(c.held) == 0 {
		return batch
	}
	for _, h := range w.part(t, c) {
		if slices.ContainsFunc(batch, func(s poller.Settlement) bool { return s.JobID == h.id }) {
			c.held = append(c.held, h)
			continue
		}
		s := drawSettlement(t)
		s.JobID, s.Lease = h.id, h.lease
		batch = append(batch, s)
	}
	return batch
}

func holding(c *claimant) bool { return len(c.held) > 0 }

// part takes some of what a claimant believes to hold out of its hands.
func (w *world) part(t *rapid.T, c *claimant) []hold {
	holds := rapid.Permutation(c.held).Draw(t, "holds")
	n := rapid.IntRange(1, min(3, len(holds))).Draw(t, "of them")
	c.held = slices.Clone(holds[n:])
	return oneEach(holds[:n], &c.held)
}

// oneEach leaves one hold of each job; a job claimed again after a lost lease
// is held twice. The others go back.
func oneEach(holds []hold, back *[]hold) (each []hold) {
	for _, h := range holds {
		if slices.ContainsFunc(each, func(e hold) bool { return e.id == h.id }) {
			*back = append(*back, h)
		} else {
			each = append(each, h)
		}
	}
	return each
}

// forget drops what the batch left in the claimant's hands.
func (c *claimant) forget(batch []poller.Settlement) {
	for _, s := range batch {
		c.held = without(c.held, func(h hold) bool { return h.id == s.JobID && h.lease == s.Lease })
		c.declined = slices.DeleteFunc(c.declined, func(d poller.Settlement) bool { return d.JobID == s.JobID && d.Lease == s.Lease })
	}
}

func drawSettlement(t *rapid.T) poller.Settlement {
	s := rapid.SampledFrom([]poller.Settlement{
		{Delay: hour, Polled: true, Status: "processing"},
		{Polled: true, Status: "queued"},
		{Polled: true},
		{Delay: hour, Polled: true, Class: poller.HTTP5xx, Error: "http_5xx 503"},
		{Polled: true, Class: poller.Malformed, Error: "malformed 200", Status: "odd"},
		{Polled: true, Class: poller.HTTP4xx, Error: "http_4xx 404", NotFound: 3},
		{Class: poller.Timeout, Error: "timeout"},
		{State: "completed", Polled: true, Status: "completed", Final: []byte(`{"terminal": true}`)},
		{State: "failed", Polled: true, Status: "failed", Final: []byte(`{"terminal": true}`)},
		{State: poller.StateNotFound, Polled: true, Class: poller.HTTP4xx, Error: "http_4xx 404", NotFound: 8},
	}).Draw(t, "settlement")
	if s.State != "" {
		s.Delay = hour
	}
	s.Backoff = hour
	return s
}

// errorOf is what a run settles in place of what the table refused.
func errorOf(s poller.Settlement, refusal poller.WriteError) poller.Settlement {
	return poller.Settlement{
		JobID: s.JobID, Lease: s.Lease, Delay: s.Backoff, Backoff: s.Backoff, Polled: s.Polled,
		Status: s.Status, Class: poller.WriteRefused, Error: refusal.Error(), NotFound: s.NotFound,
	}
}

// settle settles a batch and holds the results against the model.
func (w *world) settle(c *claimant, batch []poller.Settlement) {
	want := make([]poller.Result, len(batch))
	for i, s := range batch {
		want[i], _ = w.row(s.JobID).settlement(s)
	}
	got, err := c.store.Settle(w.ctx, batch)
	if err != nil {
		w.disagree("%s's settle: %v", c.name, err)
	}
	w.t.Logf("%s settles %+v: %+v", c.name, batch, got)
	w.same(c, got, want)
	for i, s := range batch {
		w.settled(c, s, got[i])
	}
}

// same holds the results of a batch against those wanted.
func (w *world) same(c *claimant, got, want []poller.Result) {
	if len(got) != len(want) {
		w.disagree("%s has %d results, want %d", c.name, len(got), len(want))
	}
	for i := range got {
		if got[i].Outcome != want[i].Outcome || got[i].State != want[i].State {
			w.disagree("%s's row %d came to %+v, want %+v", c.name, i+1, got[i], want[i])
		}
		w.sameRefusal(got[i].Error, want[i].Error)
	}
}

// settled does in the model what a result stands for.
func (w *world) settled(c *claimant, s poller.Settlement, got poller.Result) {
	r := w.row(s.JobID)
	want, effect := r.settlement(s)
	switch {
	case got.Outcome == poller.Locked:
		c.held = append(c.held, hold{id: s.JobID, lease: s.Lease, charged: r.charged})
	case got.Outcome != want.Outcome: // in a race, another was faster
	case got.Outcome == poller.Refused:
		effect()
		c.leftOut[r.ID] = true
		if s.Class == poller.WriteRefused {
			return
		}
		c.declined = append(c.declined, errorOf(s, *got.Error))
	default:
		before := r.State
		effect()
		if r.State != before {
			w.announced[r.ID+" "+r.State]++
		}
	}
}

// askAgain repeats an operation whose answer its claimant never saw.
func (w *world) askAgain(t *rapid.T) {
	c := w.someone(t, func(c *claimant) bool { return len(c.again) > 0 })
	i := rapid.IntRange(0, len(c.again)-1).Draw(t, "operation")
	ask := c.again[i]
	c.again = slices.Delete(c.again, i, i+1)
	ask()
}

// crash ends a claimant's run. Another begins in its place, in the same process
// or in another.
func (w *world) crash(t *rapid.T) {
	c := w.someone(t, nil)
	w.t.Logf("%s crashes", c.name)
	c.held, c.declined, c.again, c.leftOut = nil, nil, nil, map[string]bool{}
	if warm, ok := c.store.(interface{ Reset() }); ok && rapid.Bool().Draw(t, "same process") {
		warm.Reset()
		return
	}
	c.store = w.store()
}
