package jobs

import (
	"slices"
	"sync"
	"time"

	"sumepoller/internal/poller"
	"sumepoller/internal/postgres/statement"
)

// How often a claim sweeps: looks at every due row, also at those below the
// bound.
const (
	sweepEvery = 5 * time.Second
	sweepShare = 40 // the pause between two sweeps, in durations of one sweep
)

// progress is where a store's claims begin in the due index, and the rows that
// they leave out.
//
// A reschedule leaves a dead index entry at the row's old due time. Claims begin
// at the bound, the greatest due time claimed so far, so that they do not walk
// the dead entries again. A row can get below the bound: inserted in the past,
// reopened, released, or its lease has expired. Therefore a claim sweeps, that is
// begins at the oldest entry, every few seconds, and whenever the claim before it
// got less than it asked for.
type progress struct {
	mu          sync.Mutex
	bound       *int64              // where claims begin, microseconds since 1970; nil: at the oldest entry
	sweepAt     time.Time           // when the next claim sweeps
	sweeps      int                 // sweeps finished
	asked       [64]poller.LeaseID  // the latest leases asked for, circular
	next        int                 // index in asked of the next one
	longest     time.Duration       // longest lease asked for
	uncounted   bool                // claims take nothing from the daily quota
	excluded    []string            // rows that the table refuses to change; no claim asks for them
	writeErrors []poller.WriteError // of claims; the next claim's answer carries them
}

// walk is one claim's walk through the due index.
type walk struct {
	from   *int64 // nil: a sweep
	start  time.Time
	sweeps int
}

// ask records a request and reports whether its lease was asked for before.
func (p *progress) ask(r poller.ClaimRequest) (again bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.longest, p.uncounted = max(p.longest, r.For), r.PaceLine < 0
	if slices.Contains(p.asked[:], r.Lease) {
		return true
	}
	p.asked[p.next] = r.Lease
	p.next = (p.next + 1) % len(p.asked)
	return false
}

// begin returns where a claim begins.
func (p *progress) begin(now time.Time) walk {
	p.mu.Lock()
	defer p.mu.Unlock()
	w := walk{from: p.bound, start: now, sweeps: p.sweeps}
	if p.bound == nil || !now.Before(p.sweepAt) {
		w.from = nil
		p.sweepAt = now.Add(sweepEvery) // concurrent claims need not sweep too
	}
	return w
}

// end moves the bound after a claim. last is the greatest due time that it got,
// full means that it got as many rows as it could: what it asked for, or what
// the daily quota allowed.
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
		p.bound = last // perhaps back, to rows that were below it
	case w.sweeps == p.sweeps && p.bound != nil && *last > *p.bound:
		p.bound = last
	}
}

// sweepNext makes the next claim a sweep.
func (p *progress) sweepNext() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.bound = nil
}

// exclude keeps a row out of all further claims.
func (p *progress) exclude(id string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !slices.Contains(p.excluded, id) {
		p.excluded = append(p.excluded, id)
	}
}

// include undoes exclude.
func (p *progress) include(id string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.excluded = slices.DeleteFunc(p.excluded, func(other string) bool { return other == id })
}

// addError records a claim's write error and excludes its row.
func (p *progress) addError(e poller.WriteError) {
	p.exclude(e.JobID)
	p.mu.Lock()
	defer p.mu.Unlock()
	p.writeErrors = append(p.writeErrors, e)
}

// takeErrors returns the write errors since the last call.
func (p *progress) takeErrors() []poller.WriteError {
	p.mu.Lock()
	defer p.mu.Unlock()
	taken := p.writeErrors
	p.writeErrors = nil
	return taken
}

// excludedIDs returns the rows that no claim asks for; never nil.
func (p *progress) excludedIDs() []string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return append([]string{}, p.excluded...)
}

// reset forgets everything but the leases.
func (p *progress) reset() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.bound, p.excluded, p.writeErrors = nil, nil, nil
}

// longestLease returns the longest lease that a row can have, in microseconds.
func (p *progress) longestLease() int64 {
	p.mu.Lock()
	defer p.mu.Unlock()
	return max(statement.LongestLease, p.longest).Microseconds()
}

// counted reports whether claims take their reads from the daily quota.
func (p *progress) counted() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return !p.uncounted
}
