package sumetest

import (
	"maps"
	"slices"
	"time"
)

// Stats is what an API has seen since New or Reset.
type Stats struct {
	Reads       int // reads that arrived
	Answered    int // reads that passed the key and the limits
	Refused     int // requests with a wrong key, answered 401
	Limited     int // requests past a limit, answered 429
	Overlapping int // reads that began during another read of the same job
	InFlight    int // reads in flight now
	MaxInFlight int // most reads in flight
	Strays      int // requests with another path or method
	Billed      int // jobs bought
	Posts       []Post
	Jobs        map[string]JobStats
	Hosts       map[string]string // the key last seen, by Host header
}

// JobStats is what an API has seen of one job.
type JobStats struct {
	Reads int
	Path  string // escaped, of the last read
	Ended bool   // a read was answered with its terminal status
}

// Post is one post as it arrived.
type Post struct {
	Key    string
	Body   string
	JobID  string // bought or found, even if the answer was lost
	Status int    // 0 while it is answered
}

// state is what Reset deletes. The API's lock guards it.
type state struct {
	jobs       map[string]*job
	faults     map[string][]Fault // by job id; "" for reads of any job
	postFaults []Fault
	orders     map[string]*order // by idempotency key
	limits     map[string]*limits
	times      []time.Time
	seen       Stats // without Jobs
}

func newState() state {
	return state{
		jobs:   map[string]*job{},
		faults: map[string][]Fault{},
		orders: map[string]*order{},
		limits: map[string]*limits{},
		seen:   Stats{Hosts: map[string]string{}},
	}
}

// Stats returns the counters.
func (a *API) Stats() Stats {
	a.mu.Lock()
	defer a.mu.Unlock()
	s := a.seen
	s.Posts, s.Hosts, s.Jobs = slices.Clone(s.Posts), maps.Clone(s.Hosts), make(map[string]JobStats, len(a.jobs))
	for id, j := range a.jobs {
		s.Jobs[id] = j.seen
	}
	return s
}

// Times returns when each read arrived, oldest first. Refused reads count.
func (a *API) Times() []time.Time {
	a.mu.Lock()
	defer a.mu.Unlock()
	return slices.Clone(a.times)
}
