package model

import (
	"slices"

	"pgregory.net/rapid"

	"sumepoller/internal/poller"
)

// settleSome settles some of what a claimant believes to hold; sometimes it
// never sees the answer.
func (w *world) settleSome(t *rapid.T) {
	c := w.someone(t, holding)
	batch := drawBatch(t, w.part(t, c))
	if w.settle(c, batch); rapid.IntRange(0, 3).Draw(t, "answered") == 0 {
		c.forget(batch)
		c.again = append(c.again, func() { w.settle(c, batch) })
	}
}

func holding(c *claimant) bool { return len(c.held) > 0 }

// part takes some of what a claimant believes to hold out of its hands.
func (w *world) part(t *rapid.T, c *claimant) []poller.Release {
	holds := rapid.Permutation(c.held).Draw(t, "holds")
	n := rapid.IntRange(1, min(3, len(holds))).Draw(t, "of them")
	c.held = slices.Clone(holds[n:])
	return oneEach(holds[:n], &c.held)
}

// oneEach leaves one hold of each job; a job claimed again after a lost lease
// is held twice. The others go back.
func oneEach(holds []poller.Release, back *[]poller.Release) (each []poller.Release) {
	for _, h := range holds {
		if slices.ContainsFunc(each, func(e poller.Hold) bool { return e.JobID == h.JobID }) {
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
		c.held = without(c.held, func(h poller.Hold) bool { return h.JobID == s.JobID && h.Lease == s.Lease })
	}
}

func drawBatch(t *rapid.T, holds []poller.Release) (batch []poller.Settlement) {
	for _, h := range holds {
		s := rapid.SampledFrom([]poller.Settlement{
			{Delay: hour, Polled: true, Status: "processing"},
			{Polled: true, Status: "queued"},
			{Polled: true},
			{Delay: hour, Polled: true, Error: "http_5xx 503"},
			{Polled: true, Error: "malformed 200", Status: "odd"},
			{Error: "timeout"},
			{State: "completed", Polled: true, Status: "completed", Final: []byte(`{"terminal": true}`)},
			{State: "failed", Polled: true, Status: "failed", Final: []byte(`{"terminal": true}`)},
			{State: poller.StateNotFound, Polled: true, Error: "http_4xx 404"},
		}).Draw(t, "settlement")
		s.JobID, s.Lease = h.JobID, h.Lease
		batch = append(batch, s)
	}
	return batch
}

// settle settles a batch and holds the outcomes against the model.
func (w *world) settle(c *claimant, batch []poller.Settlement) {
	want := make([]poller.Outcome, len(batch))
	for i, s := range batch {
		want[i], _ = w.row(s.JobID).outcome(s.Lease, s.State)
	}
	got, err := c.store.Settle(w.ctx, batch)
	if err != nil {
		w.disagree("%s's settle: %v", c.name, err)
	}
	w.t.Logf("%s settles %+v: %v", c.name, batch, got)
	if !slices.Equal(got, want) {
		w.disagree("%s's settle of %+v came to %v, want %v", c.name, batch, got, want)
	}
	for i, s := range batch {
		w.settled(c, s, got[i])
	}
}

// settled does in the model what an outcome stands for.
func (w *world) settled(c *claimant, s poller.Settlement, o poller.Outcome) {
	r := w.row(s.JobID)
	if _, writes := r.outcome(s.Lease, s.State); writes && o == poller.Done {
		r.settle(s)
		if s.State != "" {
			w.announced[r.ID+" "+s.State]++
		}
	}
	if o == poller.Again {
		c.held = append(c.held, poller.Release{JobID: s.JobID, Lease: s.Lease})
	}
}

// releaseSome gives some rows back; sometimes the claimant never sees the answer.
func (w *world) releaseSome(t *rapid.T) {
	c := w.someone(t, holding)
	holds := drawUnread(t, w.part(t, c))
	if w.release(c, holds); rapid.IntRange(0, 3).Draw(t, "answered") == 0 {
		c.held = without(c.held, func(h poller.Hold) bool { return in(holds, h) })
		c.again = append(c.again, func() { w.release(c, holds) })
	}
}

// in tells whether the batch gives up the same lease on the same row.
func in(batch []poller.Release, h poller.Hold) bool {
	return slices.ContainsFunc(batch, func(b poller.Hold) bool { return b.JobID == h.JobID && b.Lease == h.Lease })
}

func drawUnread(t *rapid.T, holds []poller.Release) []poller.Release {
	for i := range holds {
		holds[i].Unread = rapid.Bool().Draw(t, "unread")
	}
	return holds
}

// release releases rows and holds the outcomes against the model.
func (w *world) release(c *claimant, holds []poller.Release) {
	want := make([]poller.Outcome, len(holds))
	for i, h := range holds {
		want[i], _ = w.row(h.JobID).outcome(h.Lease, "")
	}
	got, err := c.store.Release(w.ctx, w.day, holds)
	if err != nil {
		w.disagree("%s's release: %v", c.name, err)
	}
	w.t.Logf("%s releases %+v: %v", c.name, holds, got)
	if !slices.Equal(got, want) {
		w.disagree("%s's release of %+v came to %v, want %v", c.name, holds, got, want)
	}
	for i, h := range holds {
		w.released(c, h, got[i])
	}
}

// released does in the model what an outcome stands for.
func (w *world) released(c *claimant, h poller.Hold, o poller.Outcome) {
	r := w.row(h.JobID)
	if _, writes := r.outcome(h.Lease, ""); writes && o == poller.Done {
		r.Tenure, r.ahead = free, false
		if h.Unread && w.ceiling >= 0 {
			w.reads--
		}
	}
	if o == poller.Again {
		c.held = append(c.held, h)
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

// crash ends a claimant; another process takes its place.
func (w *world) crash(t *rapid.T) {
	c := w.someone(t, nil)
	w.t.Logf("%s crashes", c.name)
	c.held, c.again, c.store = nil, nil, w.store()
}
