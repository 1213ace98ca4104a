// Package poller follows bought video jobs until they are finished. A run
// claims due rows under a lease, reads each job from the Sume API, decides what
// the answer means, and settles the row. It goes on until nothing is due or its
// time budget is used up.
//
// One goroutine, the loop of [Poller.Run], owns the state of a run. That state
// is split into parts: the seeker (what to claim, and when), the writer (what
// to write, and when), the guard (whether an error concerns one row, the key or
// the API), the leases, the minute limit and the daily quota. The methods of a
// part take the current time and return a decision, which the run carries out.
//
// The package imports no other package of this module. The table and the API
// are the interfaces [Table] and [Reader], which internal/postgres and
// internal/sume implement. They pass durations and no points in time, because
// only the database's clock decides what is due.
package poller

import (
	"context"
	"log/slog"
	"time"
)

// Poller runs the loop over a table. A warm sandbox keeps its Poller, because it
// remembers the minute limit. It does one run at a time.
type Poller struct {
	settings Settings
	log      *slog.Logger
	minute   minuteLimit
	quota    dailyQuota
}

// New returns a Poller with these settings.
func New(s Settings, log *slog.Logger) *Poller {
	return &Poller{
		settings: s,
		log:      log,
		minute:   minuteLimit{perMinute: s.ReadsPerMinute},
		quota:    dailyQuota{limit: s.ReadsPerDay},
	}
}

// Run claims, reads and settles until nothing is due or the time budget is used
// up. The time budget, the reserve and elapsed_seconds count from started, the
// start of the invocation; ctx's deadline is the function's. The summary is
// valid in every case. An error is a *RunError.
func (p *Poller) Run(ctx context.Context, table Table, api Reader, started time.Time, sum Summary) (Summary, error) {
	r := p.newRun(ctx, table, api, started, sum)
	defer r.cancel()
	r.loop()
	r.backlog()
	if r.sum.Stopped == StoppedDrained && r.sum.DueRemaining > 0 {
		r.sum.Stopped = StoppedBudget // rows are due that this run cannot claim
	}
	r.sum.ElapsedSeconds = seconds(time.Since(started))
	if r.err == nil {
		return r.sum, nil
	}
	return r.sum, r.err
}
