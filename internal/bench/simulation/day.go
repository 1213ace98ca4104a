// Package simulation runs the poller through a day of jobs in simulated time, on
// the fakes of pollertest.
package simulation

import (
	"context"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"slices"
	"time"

	"sumepoller/internal/poller"
	"sumepoller/internal/poller/pollertest"
)

// Day is a day of jobs: bought evenly at random times, each rendering for one
// of the durations in turn.
type Day struct {
	Jobs    int             // bought within the first 24 hours
	Renders []time.Duration // in turn
	TickMin time.Duration   // the shortest time between two ticks
	TickMax time.Duration   // the longest
	Fixed   time.Duration   // not 0: read at exactly this interval, without a daily quota
	Follow  time.Duration   // how long the jobs are followed at most
	Seed    uint64
}

// Result is how a day went.
type Result struct {
	Jobs       int
	Settled    int // jobs that are finished in the table
	Reads      int
	ReadsFirst int             // within the first UTC day
	Refused    int             // reads answered with 429
	Delays     []time.Duration // from finished at Sume to settled, sorted
	Awake      time.Duration   // of all runs within the first UTC day; the table answers at once
}

// ReadsPerJob returns the reads for each finished job.
func (r Result) ReadsPerJob() float64 { return float64(r.Reads) / float64(max(1, r.Settled)) }

// Delay returns the delay below which this share of the jobs lies.
func (r Result) Delay(share float64) time.Duration {
	if len(r.Delays) == 0 {
		return 0
	}
	return r.Delays[min(len(r.Delays)-1, int(share*float64(len(r.Delays))))]
}

// Run runs the poller through the day. Call it in a bubble of testing/synctest,
// whose clock begins at midnight UTC.
func Run(d Day) (Result, error) {
	rnd := rand.New(rand.NewPCG(d.Seed, 1))
	api := &pollertest.API{PerDay: 10_000, PerMinute: 120, Hint: 15 * time.Second, Latency: 100 * time.Millisecond}
	table := pollertest.NewTable()
	began := time.Now()
	settings := poller.Settings{
		Budget: 58 * time.Second, Concurrency: 64, Lease: 30 * time.Second, RequestTimeout: 15 * time.Second,
		DefaultInterval: 15 * time.Second, MinInterval: time.Second, MaxInterval: time.Hour, BackoffMax: 15 * time.Minute,
		ReadsPerMinute: 120, ReadsPerDay: 10_000,
	}
	if d.Fixed > 0 {
		settings.ReadsPerDay = 0
	}
	p := poller.New(settings, slog.New(slog.DiscardHandler))
	go buy(d, rand.New(rand.NewPCG(d.Seed, 2)), table, api)
	var awake time.Duration
	var failed error
	for time.Since(began) < d.Follow {
		start := time.Now()
		tick := start.Add(d.TickMin + time.Duration(rnd.Float64()*float64(d.TickMax-d.TickMin)))
		ctx, cancel := context.WithTimeout(context.Background(), 90*time.Second)
		if _, err := p.Run(ctx, fixedTable{table, d.Fixed}, api, start, poller.NewSummary("", poller.ModeScheduled)); err != nil {
			failed = err
		}
		cancel()
		if start.Sub(began) < 24*time.Hour {
			awake += time.Since(start)
		}
		if time.Since(began) > 24*time.Hour && table.Pending() == 0 {
			break
		}
		time.Sleep(time.Until(tick))
	}
	r := result(d, table, api, began)
	r.Awake = awake
	return r, failed
}

// fixedTable reschedules each unfinished job by a fixed interval, where one is set.
type fixedTable struct {
	*pollertest.Table
	fixed time.Duration
}

// Settle implements poller.Queue.
func (t fixedTable) Settle(ctx context.Context, batch []poller.Settlement) ([]poller.Result, error) {
	if t.fixed > 0 {
		batch = slices.Clone(batch)
		for i := range batch {
			if batch[i].State == "" && batch[i].Error == "" {
				batch[i].Delay = t.fixed
			}
		}
	}
	return t.Table.Settle(ctx, batch)
}

// buy inserts the jobs of the day, each when it is bought.
func buy(d Day, rnd *rand.Rand, table *pollertest.Table, api *pollertest.API) {
	bought := make([]time.Duration, d.Jobs)
	for i := range bought {
		bought[i] = time.Duration(rnd.Float64() * float64(24*time.Hour-time.Minute))
	}
	slices.Sort(bought)
	began := time.Now()
	for i, at := range bought {
		time.Sleep(time.Until(began.Add(at)))
		id := fmt.Sprintf("job_%05d", i)
		api.Start(id, time.Now().Add(d.Renders[i%len(d.Renders)]))
		table.Add(id, 15*time.Second)
	}
}

func result(d Day, table *pollertest.Table, api *pollertest.API, began time.Time) Result {
	out := Result{Jobs: d.Jobs, Reads: len(api.Reads), Refused: api.Refused}
	for _, read := range api.Reads {
		if read.At.Before(began.Add(24 * time.Hour)) {
			out.ReadsFirst++
		}
	}
	for _, row := range table.Rows() {
		if row.State != poller.StatePending {
			out.Settled++
			out.Delays = append(out.Delays, row.FinishedAt.Sub(api.End(row.ID)))
		}
	}
	slices.Sort(out.Delays)
	return out
}
