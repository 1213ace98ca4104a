// Package sumetest simulates the Sume API, and the one call of Secrets Manager,
// for tests and for make run. It follows the documented API: jobs go from queued
// through processing to a terminal status; a post has an idempotency key; reads
// have a minute limit and a daily limit with their headers; keys can be rotated.
// It simulates faults on request, and counts what it saw.
//
// Everything is in memory. All methods are safe for concurrent use.
package sumetest

import (
	"math/rand/v2"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"time"
)

// Options say how an API behaves. The zero value accepts every key, has no limit
// and answers at once.
type Options struct {
	Seed       uint64        // of the random latencies
	Keys       []string      // accepted keys; none: every key
	Latency    time.Duration // shortest time to an answer
	LatencyMax time.Duration // longest one, if above Latency

	ReadsPerMinute int // 0: no limit
	ReadsPerDay    int
	Minute         time.Duration // length of the minute limit's window; 0: 60 s
	Headers        string        // which headers say the limits; see HeadersPlain

	Unknown *Plan  // plan of jobs that were not added; nil: 404
	Bought  Plan   // plan of bought jobs
	IDField string // the field with the job's id in the answer to a post; see IDInData
}

// The headers that say the limits.
const (
	HeadersPlain = ""      // RateLimit-*, the reset in seconds
	HeadersX     = "x"     // X-RateLimit-*, the reset in seconds
	HeadersEpoch = "epoch" // RateLimit-*, the reset as a Unix time
	HeadersNone  = "none"
)

// API is a simulated Sume API, an http.Handler for /v1/.
type API struct {
	mu      sync.Mutex
	options Options
	rand    *rand.Rand
	state
}

// New returns an API without jobs.
func New(o Options) *API {
	a := &API{}
	a.SetOptions(o)
	a.Reset()
	return a
}

// SetOptions replaces all options. What the limits have counted stays.
func (a *API) SetOptions(o Options) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.options = o
	a.rand = rand.New(rand.NewPCG(o.Seed, 1))
}

// SetKeys replaces the accepted keys.
func (a *API) SetKeys(keys ...string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.options.Keys = keys
}

// Reset deletes the jobs, faults, counters and what the limits have counted. The
// options stay.
func (a *API) Reset() {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.state = newState()
}

// ServeHTTP answers GET /v1/jobs/{id}/status and POST /v1/videos.
func (a *API) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	path := r.URL.EscapedPath()
	if id, ok := jobID(path); ok && r.Method == http.MethodGet {
		a.read(w, r, id, path)
		return
	}
	if path == "/v1/videos" && r.Method == http.MethodPost {
		a.post(w, r)
		return
	}
	a.mu.Lock()
	a.seen.Strays++
	a.mu.Unlock()
	writeError(w, http.StatusNotFound)
}

// jobID returns the id in the path of a read. It is one escaped segment.
func jobID(path string) (string, bool) {
	rest, ok := strings.CutPrefix(path, "/v1/jobs/")
	if !ok {
		return "", false
	}
	segment, ok := strings.CutSuffix(rest, "/status")
	if !ok || segment == "" || strings.Contains(segment, "/") {
		return "", false
	}
	id, err := url.PathUnescape(segment)
	return id, err == nil
}

// key returns the API key of a request, from either of the two headers.
func key(r *http.Request) string {
	if k, ok := strings.CutPrefix(r.Header.Get("Authorization"), "Bearer "); ok {
		return k
	}
	return r.Header.Get("X-Api-Key")
}

// latency returns a random time to an answer. The caller holds the lock.
func (a *API) latency() time.Duration {
	d := a.options.Latency
	if spread := a.options.LatencyMax - d; spread > 0 {
		d += time.Duration(a.rand.Int64N(int64(spread)))
	}
	return d
}

// pause waits. It returns false if the client disconnects first.
func pause(r *http.Request, d time.Duration) bool {
	if d <= 0 {
		return true
	}
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-r.Context().Done():
		return false
	}
}
