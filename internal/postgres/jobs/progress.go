package jobs

import (
	"slices"
	"sync"
	"time"

	"sumepoller/internal/poller"
)

// How often a claim looks at every due row, also at those below the bound.
const (
	sweepEvery = 5 * time.Second
	sweepShare = 40 // the pause between sweeps, in durations of one sweep
)

// progress is where a store's claims stand in the due index.
//
// A reschedule leaves a dead entry behind at the row's old due time, and claims
// begin at the oldest. The bound lets them begin at the greatest due time
// claimed so far in place of walking the dead entries again. A row can come to
// lie below it (inserted in the past, reopened, released, its lease run out):
// from time to time a claim sweeps from the very beginning, and so does each
// one after a claim that came up short.
type progress struct {
	mu        sync.Mutex
	bound     *int64              // claims start here, microseconds since the epoch; nil: at the beginning
	sweepAt   time.Time           // when the next claim sweeps
	sweeps    int                 // sweeps finished
	asked     [64]poller.LeaseID  // leases asked for lately, in a ring
	next      int                 // where the next one goes
	longest   time.Duration       // longest lease asked for
	uncounted bool                // the claims take nothing from the daily quota
	refused   []string            // rows that the table refuses to change; no claim asks for them
	refusals  []poller.WriteError // of claims, until a claim's answer carries them
}

// walk is one claim's way through the due index.
type walk struct {
	from   *int64 // nil: from the beginning, a sweep
	start  time.Time
	sweeps int
}

// ask takes note of a request and tells whether its lease was asked for before.
func (p *progress) ask(r poller.ClaimRequest) (again bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.longest, p.uncounted = max(p.longest, r.For), r.PaceLine < 0
	for _, id := range p.asked {
		if id == r.Lease {
			return true
		}
	}
	p.asked[p.next] = r.Lease
	p.next = (p.next + 1) % len(p.asked)
	return false
}

// begin says where a claim starts.
func (p *progress) begin(now time.Time) walk {
	p.mu.Lock()
	defer p.mu.Unlock()
	w := walk{from: p.bound, start: now, sweeps: p.sweeps}
	if p.bound == nil || !now.Before(p.sweepAt) {
		w.from = nil
		p.sweepAt = now.Add(sweepEvery) // claims at the same time need not sweep too
	}
	return w
}

// end moves the bound after a claim. last is the greatest due time it got, full
// tells that it got all it might have.
func (p *progress) end(w walk, now time.Time, last *int64, full bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	swept := w.from == nil
	if swept {
		p.sweeps++
		p.sweepAt = now.Add(max(sweepEvery, sweepShare*now.Sub(w.start)))
	}
	switch {
	case !full || last == nil:
		p.bound = nil
	case swept:
		p.bound = last // back, where rows had come to lie below it
	case w.sweeps == p.sweeps && p.bound != nil && *last > *p.bound:
		p.bound = last
	}
}

// forget makes the next claim a sweep.
func (p *progress) forget() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.bound = nil
}

// leaveOut takes a row out of all claims to come.
func (p *progress) leaveOut(id string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !slices.Contains(p.refused, id) {
		p.refused = append(p.refused, id)
	}
}

// takeBack undoes leaveOut.
func (p *progress) takeBack(id string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.refused = slices.DeleteFunc(p.refused, func(other string) bool { return other == id })
}

// refuse leaves a row out that a claim was refused for.
func (p *progress) refuse(r poller.WriteError) {
	p.leaveOut(r.JobID)
	p.mu.Lock()
	defer p.mu.Unlock()
	p.refusals = append(p.refusals, r)
}

// takeRefusals returns the refusals since it was last called.
func (p *progress) takeRefusals() []poller.WriteError {
	p.mu.Lock()
	defer p.mu.Unlock()
	taken := p.refusals
	p.refusals = nil
	return taken
}

// leftOut returns the rows that no claim asks for; never nil.
func (p *progress) leftOut() []string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return append([]string{}, p.refused...)
}

// restart is forget for a new run, which tries every row again.
func (p *progress) restart() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.bound, p.refused, p.refusals = nil, nil, nil
}

// lease returns the longest lease asked for, and whether reads are counted.
func (p *progress) lease() (longest time.Duration, counted bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.longest, !p.uncounted
}
