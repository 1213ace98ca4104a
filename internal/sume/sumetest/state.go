package sumetest

import (
	"maps"
	"slices"
	"time"
)

// Stats is what an API has seen since it was made or reset.
type Stats struct {
	Reads       int                 `json:"reads"`         // that arrived, whatever became of them
	Answered    int                 `json:"answered"`      // of them past key and limits
	Refused     int                 `json:"refused"`       // requests with a wrong key, answered 401
	Limited     int                 `json:"limited"`       // requests past a limit, answered 429
	Overlapping int                 `json:"overlapping"`   // reads that began while another of the same job went on
	InFlight    int                 `json:"in_flight"`     // reads being answered now
	MaxInFlight int                 `json:"max_in_flight"` // reads at once, of all jobs
	Strays      int                 `json:"strays"`        // requests for no known path or method
	Billed      int                 `json:"billed"`        // jobs that posts made
	Posts       []Post              `json:"posts"`
	Jobs        map[string]JobStats `json:"jobs"`
	Hosts       map[string]string   `json:"hosts"` // the key last seen, by Host header
}

// JobStats is what an API has seen of one job.
type JobStats struct {
	Reads  int    `json:"reads"`
	AtOnce int    `json:"at_once"` // most reads of it at the same time
	Path   string `json:"path"`    // escaped, of the last read
	Ended  bool   `json:"ended"`   // a read was answered with its end
}

// Post is one post as it arrived.
type Post struct {
	Key    string `json:"key"`
	Body   string `json:"body"`
	JobID  string `json:"job_id"` // made or found, though the answer may have been lost
	Status int    `json:"status"` // 0 while it goes on
}

// state is what Reset forgets. The API's lock guards it.
type state struct {
	jobs       map[string]*job
	faults     map[string][]Fault // by job; "" for reads of any
	postFaults []Fault
	orders     map[string]*order // by idempotency key
	limits     map[string]*limits
	hosts      map[string]string
	times      []time.Time
	posts      []Post

	reads, answered, refused, limited, overlapping, inFlight, maxInFlight, strays, billed int
}

func newState() state {
	return state{
		jobs:   map[string]*job{},
		faults: map[string][]Fault{},
		orders: map[string]*order{},
		limits: map[string]*limits{},
		hosts:  map[string]string{},
	}
}

// Stats returns the counters as they stand.
func (a *API) Stats() Stats {
	a.mu.Lock()
	defer a.mu.Unlock()
	s := Stats{
		Reads: a.reads, Answered: a.answered, Refused: a.refused, Limited: a.limited, Overlapping: a.overlapping,
		InFlight: a.inFlight, MaxInFlight: a.maxInFlight, Strays: a.strays, Billed: a.billed,
		Posts: slices.Clone(a.posts),
		Jobs:  make(map[string]JobStats, len(a.jobs)),
		Hosts: maps.Clone(a.hosts),
	}
	for id, j := range a.jobs {
		s.Jobs[id] = j.seen
	}
	return s
}

// Times returns when each read arrived, oldest first, refused ones included.
func (a *API) Times() []time.Time {
	a.mu.Lock()
	defer a.mu.Unlock()
	return slices.Clone(a.times)
}
