// Package sumetest is a simulated Sume API with the Secrets Manager call beside
// it, for tests and for the local stack. It keeps to the documented API: jobs
// that go from queued over processing to their end, the paid post with its
// idempotency key, limits of the minute and of the day with their headers,
// keys that can be rotated. On demand it misbehaves, and it counts what it saw.
//
// Everything is in memory. All methods may be called at the same time.
package sumetest

import (
	"math/rand/v2"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"time"
)

// Options set how an API behaves. The zero value accepts every key, sets no
// limit and answers at once.
type Options struct {
	Seed       uint64        `json:"seed"`        // of latencies
	Keys       []string      `json:"keys"`        // keys accepted; none: every key
	Latency    time.Duration `json:"latency"`     // of a read or post, at least
	LatencyMax time.Duration `json:"latency_max"` // and at most, where above Latency

	ReadsPerMinute int           `json:"reads_per_minute"` // 0: no limit, as below
	ReadsPerDay    int           `json:"reads_per_day"`
	PostsPerMinute int           `json:"posts_per_minute"`
	PostsPerDay    int           `json:"posts_per_day"`
	Minute         time.Duration `json:"minute"`  // length of the minute's window; 0: 60 s
	Headers        string        `json:"headers"` // how limits are told; see HeadersPlain

	Unknown *Plan  `json:"unknown"`  // of jobs that nobody added; nil: they answer 404
	Bought  Plan   `json:"bought"`   // of jobs that were posted
	IDField string `json:"id_field"` // where a post's answer names the job; see IDInData
}

// How the limit's headers are spelled. A reset is in seconds, or an epoch.
const (
	HeadersPlain = ""      // RateLimit-*
	HeadersX     = "x"     // X-RateLimit-*
	HeadersEpoch = "epoch" // RateLimit-*, the reset as an epoch
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

// SetOptions replaces all options; what was counted against limits stays.
func (a *API) SetOptions(o Options) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.options = o
	a.rand = rand.New(rand.NewPCG(o.Seed, 1))
}

// SetKeys replaces the keys that are accepted.
func (a *API) SetKeys(keys ...string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.options.Keys = keys
}

// Reset forgets jobs, faults, counters and limits used; the options stay.
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
	a.strays++
	a.mu.Unlock()
	writeError(w, http.StatusNotFound)
}

// jobID returns the id in the path of a read: one escaped segment.
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

// key returns the key that a request carries, in either of the two ways.
func key(r *http.Request) string {
	if k, ok := strings.CutPrefix(r.Header.Get("Authorization"), "Bearer "); ok {
		return k
	}
	return r.Header.Get("X-Api-Key")
}

// latency draws how long an answer takes. The caller holds the lock.
func (a *API) latency() time.Duration {
	d := a.options.Latency
	if spread := a.options.LatencyMax - d; spread > 0 {
		d += time.Duration(a.rand.Int64N(int64(spread)))
	}
	return d
}

// pause waits, or returns false when the client leaves first.
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
