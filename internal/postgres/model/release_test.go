package model

import (
	"slices"

	"pgregory.net/rapid"

	"sumepoller/internal/poller"
)

// releases are rows given back together: those of one day's count.
type releases struct {
	rows    []poller.Release
	charged charge
}

// releaseSome gives some rows back; sometimes the claimant never sees the answer.
func (w *world) releaseSome(t *rapid.T) {
	c := w.someone(t, holding)
	batch := w.drawReleases(t, c)
	if w.release(c, batch); rapid.IntRange(0, 3).Draw(t, "answered") == 0 {
		c.held = without(c.held, batch.has)
		c.again = append(c.again, func() { w.release(c, batch) })
	}
}

// drawReleases takes rows of one day's count out of a claimant's hands.
func (w *world) drawReleases(t *rapid.T, c *claimant) (batch releases) {
	holds := w.part(t, c)
	batch.charged = holds[0].charged
	for _, h := range holds {
		if w.dateOf(h.charged) != w.dateOf(batch.charged) {
			c.held = append(c.held, h)
			continue
		}
		batch.rows = append(batch.rows, poller.Release{JobID: h.id, Lease: h.lease, Unread: rapid.Bool().Draw(t, "unread")})
	}
	return batch
}

// has reports whether the batch gives up the same lease on the same row.
func (b releases) has(h hold) bool {
	return slices.ContainsFunc(b.rows, func(r poller.Release) bool { return r.JobID == h.id && r.Lease == h.lease })
}

// release releases rows and holds the results against the model.
func (w *world) release(c *claimant, batch releases) {
	want := make([]poller.Result, len(batch.rows))
	for i, b := range batch.rows {
		want[i], _, _ = w.row(b.JobID).release(b.Lease, b.Unread)
	}
	got, err := c.store.Release(w.ctx, w.dateOf(batch.charged), batch.rows)
	if err != nil {
		w.disagree("%s's release: %v", c.name, err)
	}
	w.t.Logf("%s releases %+v to %s: %+v", c.name, batch.rows, w.dateOf(batch.charged), got)
	w.same(c, got, want)
	for i, b := range batch.rows {
		w.released(c, b, batch.charged, got[i])
	}
}

// released does in the model what a result stands for.
func (w *world) released(c *claimant, b poller.Release, charged charge, got poller.Result) {
	r := w.row(b.JobID)
	want, frees, effect := r.release(b.Lease, b.Unread)
	switch {
	case got.Outcome == poller.Locked:
		c.held = append(c.held, hold{id: b.JobID, lease: b.Lease, charged: charged})
	case got.Outcome != want.Outcome: // in a race, another was faster
	case got.Outcome == poller.Refused:
		c.leftOut[r.ID] = true
	default:
		effect()
		if frees {
			w.refund(charged)
		}
	}
}
