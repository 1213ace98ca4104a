// Package simulation runs the poller for a day of jobs in simulated time.
package simulation

import (
	"context"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"slices"
	"sort"
	"time"

	"sumepoller/internal/poller"
	"sumepoller/internal/poller/pollertest"
)

// Scene is a day of jobs: so many a day, evenly spread with chance, each
// rendering for one of the durations in turn.
type Scene struct {
	Jobs    int             // bought within the first 24 hours
	Renders []time.Duration // in turn
	TickMin time.Duration   // ticks come this far apart at least …
	TickMax time.Duration   // … and at most
	Fixed   time.Duration   // where not 0: a poller that reads at exactly this interval and knows no day's budget
	Follow  time.Duration   // how long the day is followed; it ends earlier when every job is settled
	Seed    uint64
}

// Result is what came of a Scene.
type Result struct {
	Jobs        int
	Settled     int
	Reads       int
	ReadsFirst  int // within the first UTC day
	OverDay     int // answers of 429
	ReadsPerJob float64
	Delays      []time.Duration // from finished at Sume to settled, in order
	Runs        int             // within the first UTC day
	Awake       time.Duration   // of those together; the table answers at once
}

// Delay returns the share's quantile of the delays.
func (r Result) Delay(share float64) time.Duration {
	if len(r.Delays) == 0 {
		return 0
	}
	return r.Delays[min(len(r.Delays)-1, int(share*float64(len(r.Delays))))]
}

// PlayDay runs the loop over the scene. It is to be called in a bubble of
// testing/synctest, whose clock begins at midnight UTC.
func PlayDay(s Scene) (Result, error) {
	rnd := rand.New(rand.NewPCG(s.Seed, 1))
	api := &pollertest.API{PerDay: 10_000, PerMinute: 120, Hint: 15 * time.Second, Latency: 100 * time.Millisecond}
	table := pollertest.NewTable()
	began := time.Now()
	settings := poller.Settings{
		Budget: 58 * time.Second, Concurrency: 64, Lease: 30 * time.Second, RequestTimeout: 15 * time.Second,
		DefaultInterval: 15 * time.Second, MinInterval: time.Second, MaxInterval: time.Hour, BackoffMax: 15 * time.Minute,
		ReadsPerMinute: 120, ReadsPerDay: 10_000,
	}
	if s.Fixed > 0 {
		settings.ReadsPerDay = 0
	}
	p := poller.New(settings, slog.New(slog.DiscardHandler))
	go buy(s, rand.New(rand.NewPCG(s.Seed, 2)), table, api)
	var runs struct {
		n     int
		awake time.Duration
	}
	var failed error
	for time.Since(began) < s.Follow {
		tick := time.Now().Add(s.TickMin + time.Duration(rnd.Float64()*float64(s.TickMax-s.TickMin)))
		ctx, cancel := context.WithTimeout(context.Background(), 90*time.Second)
		start := time.Now()
		if _, err := p.Run(ctx, timetable{table, s.Fixed}, api, start, poller.NewSummary("", poller.ModeScheduled)); err != nil {
			failed = err
		}
		cancel()
		if start.Sub(began) < 24*time.Hour {
			runs.n++
			runs.awake += time.Since(start)
		}
		if time.Since(began) > 24*time.Hour && table.Pending() == 0 {
			break
		}
		if d := time.Until(tick); d > 0 {
			<-time.After(d)
		}
	}
	r := result(s, table, api, began)
	r.Runs, r.Awake = runs.n, runs.awake
	return r, failed
}

// timetable is a table on which the next read of an unfinished job comes after
// a fixed interval, where there is one.
type timetable struct {
	*pollertest.Table
	fixed time.Duration
}

func (t timetable) Settle(ctx context.Context, batch []poller.Settlement) ([]poller.Result, error) {
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

// buy inserts the scene's jobs as a buyer's program would.
func buy(s Scene, rnd *rand.Rand, table *pollertest.Table, api *pollertest.API) {
	starts := make([]time.Duration, s.Jobs)
	for i := range starts {
		starts[i] = time.Duration(rnd.Float64() * float64(24*time.Hour-time.Minute))
	}
	sort.Slice(starts, func(i, j int) bool { return starts[i] < starts[j] })
	began := time.Now()
	for i, at := range starts {
		if d := time.Until(began.Add(at)); d > 0 {
			<-time.After(d)
		}
		id := fmt.Sprintf("job_%05d", i)
		api.Start(id, time.Now().Add(s.Renders[i%len(s.Renders)]))
		table.Add(id, 15*time.Second)
	}
}

func result(s Scene, table *pollertest.Table, api *pollertest.API, began time.Time) Result {
	out := Result{Jobs: s.Jobs, Reads: len(api.Reads), OverDay: api.Refused}
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
	sort.Slice(out.Delays, func(i, j int) bool { return out.Delays[i] < out.Delays[j] })
	out.ReadsPerJob = float64(out.Reads) / float64(max(1, s.Jobs))
	return out
}
