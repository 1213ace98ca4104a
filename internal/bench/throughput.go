package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"sumepoller/internal/bench/database"
	"sumepoller/internal/bench/load"
)

// setting is how a load reads.
type setting struct {
	latency  time.Duration // of the API
	inFlight int
	jobs     int
	held     int // jobs of the held-lock loop, which is slow
}

func (t setting) String() string {
	return fmt.Sprintf("%d ms, %d in flight", t.latency.Milliseconds(), t.inFlight)
}

// spec is what a load does. No load takes as long as the budget.
func (t setting) spec(kind, databaseURL, apiURL string) load.Spec {
	return load.Spec{Kind: kind, DatabaseURL: databaseURL, APIURL: apiURL, Concurrency: t.inFlight, Jobs: t.jobs, Budget: 5 * time.Minute}
}

var settings = []setting{
	{latency: 0, inFlight: 64, jobs: 6_000, held: 400},
	{latency: 0, inFlight: 256, jobs: 6_000, held: 400},
	{latency: 50 * time.Millisecond, inFlight: 64, jobs: 1_920, held: 20},
	mainSetting,
	{latency: 200 * time.Millisecond, inFlight: 64, jobs: 512, held: 5},
	{latency: 200 * time.Millisecond, inFlight: 256, jobs: 2_048, held: 5},
}

// mainSetting is what the targets are about.
var mainSetting = setting{latency: 50 * time.Millisecond, inFlight: 256, jobs: 20_000, held: 30}

// throughput measures reads a second: the poller's, a held-lock loop's, and
// those of as many goroutines that use no database.
func throughput(ctx context.Context, s *scene) error {
	u, err := newSetup(ctx, s)
	if err != nil {
		return err
	}
	defer u.stop()
	for range rounds {
		for _, t := range settings {
			if err := u.compare(ctx, s, t); err != nil {
				return fmt.Errorf("%v: %w", t, err)
			}
		}
	}
	return nil
}

// compare measures the three loads once, one after the other.
func (u *setup) compare(ctx context.Context, s *scene, t setting) error {
	name, rate := t.String()+": ", map[string]float64{}
	for _, kind := range []string{load.NoDatabase, load.Poller, load.HeldLock} {
		r, cost, err := u.load(ctx, t, kind)
		if err != nil {
			return fmt.Errorf("%s: %w", kind, err)
		}
		rate[kind] = r.Rate()
		s.add(name+kind, "reads/s", r.Rate())
		reads := float64(r.Reads)
		switch {
		case kind == load.HeldLock && t == settings[0]: // the most rows
			s.add("held-lock loop: statements a read", "", cost.Statements/reads)
			s.add("held-lock loop: WAL a read", "bytes", cost.WAL/reads)
		case kind == load.Poller && t == mainSetting:
			s.add(name+"statements a read", "", cost.Statements/reads)
			s.add(name+"WAL a read", "bytes", cost.WAL/reads)
			s.add(name+"buffers a read", "", cost.Buffers/reads)
			s.add(name+"execution a read", "µs", cost.Execution*1000/reads)
		}
	}
	s.add(name+"poller to held-lock loop", "times", rate[load.Poller]/rate[load.HeldLock])
	s.add(name+"poller to no database", "times", rate[load.Poller]/rate[load.NoDatabase])
	return nil
}

// load runs one load on a fresh database, and checks that it read each job once.
func (u *setup) load(ctx context.Context, t setting, kind string) (r load.Result, cost database.Counters, err error) {
	u.resetAPI(t.latency)
	fresh := u.db.Fresh
	switch kind {
	case load.NoDatabase:
		r, err = run[load.Result](ctx, roleLoad, t.spec(kind, "", u.server.URL))
		return r, cost, err
	case load.HeldLock:
		fresh, t.jobs = u.db.Bare, t.held
	}
	d, err := fresh(ctx)
	if err != nil {
		return r, cost, err
	}
	defer d.Drop(ctx)
	if err := errors.Join(d.Fill(ctx, t.jobs), d.Checkpoint(ctx), d.ResetCounters(ctx)); err != nil {
		return r, cost, err
	}
	if r, err = run[load.Result](ctx, roleLoad, t.spec(kind, d.URL, u.server.URL)); err != nil {
		return r, cost, err
	}
	if cost, err = d.Counters(ctx); err != nil {
		return r, cost, err
	}
	if left, err := d.Pending(ctx); err != nil || left > 0 || r.Reads != t.jobs {
		return r, cost, errors.Join(err, fmt.Errorf("%d of %d jobs left, %d reads, %s", left, t.jobs, r.Reads, r.Stopped))
	}
	return r, cost, nil
}
