package simulation

import (
	"context"
	"math/rand/v2"
	"sync"
	"time"

	"sumepoller/internal/poller"
)

// API is the simulated Sume API. Its limits are counted in fixed windows: the
// minute's and the UTC day's.
type API struct {
	PerMinute int           // 0: none
	PerDay    int           // 0: none
	Hint      time.Duration // what an answer asks for
	Latency   time.Duration // half to one and a half of this
	// Answer, where set, may answer a read in the API's place.
	Answer func(id string, n int) (poller.Answer, error, bool)

	mu      sync.Mutex
	ends    map[string]time.Time
	Reads   []Read
	Refused int // answers of 429
	counts  map[string]int
	minute  time.Time
	inMin   int
	day     string
	inDay   int
	busy    map[string]bool
	Twice   int // reads of a job while another of it was under way
}

// Read is one read as the API saw it.
type Read struct {
	ID string
	At time.Time
}

// Start makes a job that renders until end.
func (a *API) Start(id string, end time.Time) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.ends == nil {
		a.ends, a.counts, a.busy = map[string]time.Time{}, map[string]int{}, map[string]bool{}
	}
	a.ends[id] = end
}

// End returns when a job's render ends.
func (a *API) End(id string) time.Time {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.ends[id]
}

// Counts returns the reads made of each job.
func (a *API) Counts() map[string]int {
	a.mu.Lock()
	defer a.mu.Unlock()
	out := map[string]int{}
	for id := range a.ends {
		out[id] = a.counts[id]
	}
	return out
}

// Status implements poller.Reader.
func (a *API) Status(ctx context.Context, id string) (poller.Answer, error) {
	a.mark(id, true)
	defer a.mark(id, false)
	timer := time.NewTimer(a.Latency/2 + time.Duration(rand.Float64()*float64(a.Latency)))
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
		return poller.Answer{}, ctx.Err()
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	now := time.Now()
	window, ok := a.allow(now)
	if !ok {
		a.Refused++
		fault := &poller.ReadError{Class: poller.RateLimited, HTTPStatus: 429, RetryAfter: window.Reset, JSON: true}
		return poller.Answer{Window: window}, fault
	}
	a.counts[id]++
	a.Reads = append(a.Reads, Read{ID: id, At: now})
	if a.Answer != nil {
		if answer, err, mine := a.Answer(id, a.counts[id]); mine {
			answer.Window = window
			return answer, err
		}
	}
	if end := a.ends[id]; !now.Before(end) {
		return poller.Answer{Terminal: true, Status: "completed", Body: body(id, "completed"), Window: window}, nil
	}
	return poller.Answer{Status: "processing", NextPoll: a.Hint, Window: window}, nil
}

func (a *API) mark(id string, begin bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.busy == nil {
		a.ends, a.counts, a.busy = map[string]time.Time{}, map[string]int{}, map[string]bool{}
	}
	if begin && a.busy[id] {
		a.Twice++
	}
	a.busy[id] = begin
}

// allow counts a read, and returns the window that is nearer to its end.
func (a *API) allow(now time.Time) (*poller.Window, bool) {
	if m := now.Truncate(time.Minute); m != a.minute {
		a.minute, a.inMin = m, 0
	}
	if d := date(now); d != a.day {
		a.day, a.inDay = d, 0
	}
	w := &poller.Window{Limit: a.PerMinute, Remaining: a.PerMinute - a.inMin, Reset: a.minute.Add(time.Minute).Sub(now)}
	if left := a.PerDay - a.inDay; a.PerDay > 0 && (a.PerMinute == 0 || left < w.Remaining) {
		midnight := now.UTC().Truncate(24 * time.Hour).Add(24 * time.Hour)
		w = &poller.Window{Limit: a.PerDay, Remaining: left, Reset: midnight.Sub(now)}
	}
	if a.PerMinute == 0 && a.PerDay == 0 {
		return nil, true
	}
	if w.Remaining <= 0 {
		w.Remaining = 0
		return w, false
	}
	a.inMin++
	a.inDay++
	w.Remaining--
	return w, true
}
