package pollertest

import (
	"context"
	"encoding/json"
	"math/rand/v2"
	"sync"
	"time"

	"sumepoller/internal/poller"
)

// API is a Sume API in memory. Its zero value has no limits and no jobs, and
// answers at once that a job is completed. It is safe for concurrent use; set
// the options before the first read, and look at the results after the last.
type API struct {
	// Options.
	PerMinute int           // reads allowed in each minute of the clock; 0: no limit
	PerDay    int           // reads allowed in each UTC day; 0: no limit
	Hint      time.Duration // the interval that an answer asks for
	Latency   time.Duration // an answer takes between 0.5 and 1.5 times this
	// Answer, where it is set and returns true, gives the answer to the n-th
	// read of a job.
	Answer func(id string, n int) (poller.Answer, error, bool)

	// Results.
	Reads   []Read // those that were not refused
	Refused int    // answers of 429
	Twice   int    // reads of a job during another read of the same job

	mu     sync.Mutex
	jobs   map[string]*job
	minute window
	day    window
}

// Read is one read of a job.
type Read struct {
	ID string
	At time.Time
}

type job struct {
	started bool
	end     time.Time // when the render ends
	reads   int
	busy    bool // a read is under way
}

// window counts the reads of one minute or one day.
type window struct {
	start time.Time
	reads int
}

// job returns the job with this id.
func (a *API) job(id string) *job {
	j := a.jobs[id]
	if j == nil {
		if a.jobs == nil {
			a.jobs = map[string]*job{}
		}
		j = &job{}
		a.jobs[id] = j
	}
	return j
}

// Start makes a job that renders until end.
func (a *API) Start(id string, end time.Time) {
	a.mu.Lock()
	defer a.mu.Unlock()
	j := a.job(id)
	j.started, j.end = true, end
}

// End returns when a job's render ends.
func (a *API) End(id string) time.Time {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.job(id).end
}

// Counts returns the number of reads of each started job.
func (a *API) Counts() map[string]int {
	a.mu.Lock()
	defer a.mu.Unlock()
	out := map[string]int{}
	for id, j := range a.jobs {
		if j.started {
			out[id] = j.reads
		}
	}
	return out
}

// Status implements poller.Reader.
func (a *API) Status(ctx context.Context, id string) (poller.Answer, error) {
	a.setBusy(id, true)
	defer a.setBusy(id, false)
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
	limit, ok := a.count(now)
	if !ok {
		a.Refused++
		err := &poller.ReadError{Class: poller.RateLimited, HTTPStatus: 429, RetryAfter: limit.Reset, JSON: true}
		return poller.Answer{Window: limit}, err
	}
	j := a.job(id)
	j.reads++
	a.Reads = append(a.Reads, Read{ID: id, At: now})
	if a.Answer != nil {
		if answer, err, ok := a.Answer(id, j.reads); ok {
			answer.Window = limit
			return answer, err
		}
	}
	if now.Before(j.end) {
		return poller.Answer{Status: "processing", NextPoll: a.Hint, Window: limit}, nil
	}
	return poller.Answer{Terminal: true, Status: "completed", Body: completed(id), Window: limit}, nil
}

// completed is the JSON of a finished job's answer.
func completed(id string) []byte {
	b, _ := json.Marshal(map[string]any{"job_id": id, "sume_status": "completed", "terminal": true})
	return b
}

func (a *API) setBusy(id string, busy bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	j := a.job(id)
	if busy && j.busy {
		a.Twice++
	}
	j.busy = busy
}

// count counts a read and reports whether the limits allow it. It returns the
// limit that has fewer reads left; nil where there is none.
func (a *API) count(now time.Time) (*poller.Window, bool) {
	if a.PerMinute == 0 && a.PerDay == 0 {
		return nil, true
	}
	minute, day := now.Truncate(time.Minute), now.UTC().Truncate(24*time.Hour)
	if minute != a.minute.start {
		a.minute = window{start: minute}
	}
	if day != a.day.start {
		a.day = window{start: day}
	}
	w := &poller.Window{Limit: a.PerMinute, Remaining: a.PerMinute - a.minute.reads, Reset: minute.Add(time.Minute).Sub(now)}
	if left := a.PerDay - a.day.reads; a.PerDay > 0 && (a.PerMinute == 0 || left < w.Remaining) {
		w = &poller.Window{Limit: a.PerDay, Remaining: left, Reset: day.Add(24 * time.Hour).Sub(now)}
	}
	if w.Remaining <= 0 {
		w.Remaining = 0
		return w, false
	}
	a.minute.reads++
	a.day.reads++
	w.Remaining--
	return w, true
}
