package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"sumepoller/internal/bench/cgroup"
	"sumepoller/internal/bench/database"
	"sumepoller/internal/bench/load"
	"sumepoller/internal/bench/report"
)

// The setting that the targets are about.
var mainSetting = setting{latency: 50 * time.Millisecond, inFlight: 256, jobs: 20_000, held: 30}

// throughputSettings are what reads a second are measured at.
var throughputSettings = []setting{
	{latency: 0, inFlight: 64, jobs: 6_000, held: 400},
	{latency: 0, inFlight: 256, jobs: 6_000, held: 400},
	{latency: 50 * time.Millisecond, inFlight: 64, jobs: 1_920, held: 20},
	mainSetting,
	{latency: 200 * time.Millisecond, inFlight: 64, jobs: 512, held: 5},
	{latency: 200 * time.Millisecond, inFlight: 256, jobs: 2_048, held: 5},
}

// throughput is reads a second on the whole machine.
func throughput(ctx context.Context, s *report.Section) error {
	err := rates(ctx, s, throughputSettings)
	s.AtLeast(mainSetting.String()+": ours to the held-lock loop", 150)
	s.AtLeast(mainSetting.String()+": ours to no database", 0.80)
	s.AtMost(mainSetting.String()+": statements a read", 0.1)
	s.AtMost(mainSetting.String()+": WAL a read", 950)
	return err
}

// limited is the same with what a function of 256 MiB has of a processor.
func limited(ctx context.Context, s *report.Section) error {
	const cores, memory = 0.145, 256
	group, err := cgroup.New(cores, memory<<20)
	if err != nil {
		s.Note("not measured here: %v", err)
		return nil
	}
	defer group.Remove()
	s.Note("the load alone is held to %v of a core and %d MiB by a control group; database and API are not", cores, memory)
	var settings []setting
	for _, inFlight := range []int{64, 256} {
		for _, latency := range []time.Duration{0, 50 * time.Millisecond, 200 * time.Millisecond} {
			t := setting{latency: latency, inFlight: inFlight, jobs: 450, held: 10, group: group, memory: memory}
			if latency > 100*time.Millisecond {
				t.held = 3
			}
			settings = append(settings, t)
		}
	}
	return rates(ctx, s, settings)
}

// rates takes the three loads in turn, each setting once a round.
func rates(ctx context.Context, s *report.Section, settings []setting) error {
	w, err := newWorld(ctx, s)
	if err != nil {
		return err
	}
	defer w.stop()
	s.Note("ours: poller.Run, each job read once and finished, %d connections, the day's allowance counted; "+
		"held-lock loop: begin, claim with FOR UPDATE SKIP LOCKED, read, update, commit, on a table of the three columns; "+
		"no database: as many goroutines that only read. All three with the same client, answers of 240 bytes", conns)
	for range rounds {
		for _, t := range settings {
			if err := w.compare(ctx, s, t); err != nil {
				return fmt.Errorf("%v: %w", t, err)
			}
		}
	}
	return nil
}

// compare takes the three loads once, side by side.
func (w *world) compare(ctx context.Context, s *report.Section, t setting) error {
	bare, _, err := w.run(ctx, t, load.Bare)
	if err != nil {
		return err
	}
	ours, cost, err := w.run(ctx, t, load.Ours)
	if err != nil {
		return err
	}
	held, heldCost, err := w.run(ctx, t, load.Held)
	if err != nil {
		return err
	}
	name := t.String() + ": "
	s.Take(name+"ours", "reads/s", report.Speed, ours.Rate())
	s.Take(name+"held-lock loop", "reads/s", report.Speed, held.Rate())
	s.Take(name+"no database", "reads/s", report.Speed, bare.Rate())
	s.Take(name+"ours to the held-lock loop", "times", report.Ratio, ours.Rate()/held.Rate())
	s.Take(name+"ours to no database", "times", report.Ratio, ours.Rate()/bare.Rate())
	s.Take(name+"processor a read, ours", "µs", report.Time, float64(ours.CPU.Microseconds())/float64(ours.Reads))
	s.Take(name+"processor a read, no database", "µs", report.Time, float64(bare.CPU.Microseconds())/float64(bare.Reads))
	s.Take(name+"memory at most, ours", "MiB", report.Size, float64(ours.PeakRSS)/(1<<20))
	if t == throughputSettings[0] { // the one with rows enough
		s.Take("held-lock loop: statements a read", "statements", report.Count, heldCost.Statements/float64(held.Reads))
		s.Take("held-lock loop: WAL a read", "bytes", report.Count, heldCost.WAL/float64(held.Reads))
	}
	if t == mainSetting {
		reads := float64(ours.Reads)
		s.Take(name+"statements a read", "statements", report.Count, cost.Statements/reads)
		s.Take(name+"WAL a read", "bytes", report.Count, cost.WAL/reads)
		s.Take(name+"buffers a read", "buffers", report.Count, cost.Buffers/reads)
		s.Take(name+"execution a read", "µs", report.Time, cost.Execution*1000/reads)
		s.Note("WAL is counted from the log's position, from a checkpoint on, with its full pages and commits")
	}
	return nil
}

// run puts one load on a fresh database.
func (w *world) run(ctx context.Context, t setting, kind string) (r load.Result, cost database.Counters, err error) {
	if err := w.answering(ctx, t.latency); err != nil {
		return r, cost, err
	}
	if kind == load.Bare {
		r, err = do[load.Result](roleLoad, t.group, t.spec(kind, "", w.url))
		return r, cost, err
	}
	fresh, jobs := w.db.Fresh, t.jobs
	if kind == load.Held {
		fresh, jobs = w.db.Bare, t.held
		t.jobs = t.held
	}
	d, err := fresh(ctx)
	if err != nil {
		return r, cost, err
	}
	defer d.Drop(ctx)
	if err := errors.Join(d.Fill(ctx, jobs), d.Checkpoint(ctx)); err != nil {
		return r, cost, err
	}
	before, err := d.Counters(ctx)
	if err != nil {
		return r, cost, err
	}
	if r, err = do[load.Result](roleLoad, t.group, t.spec(kind, d.URL, w.url)); err != nil {
		return r, cost, err
	}
	after, err := d.Counters(ctx)
	if err != nil {
		return r, cost, err
	}
	if left, err := d.Pending(ctx); err != nil || left > 0 || r.Reads != jobs {
		return r, cost, errors.Join(err, fmt.Errorf("%d of %d jobs left, %d reads, %s", left, jobs, r.Reads, r.Stopped))
	}
	return r, after.Since(before), nil
}
