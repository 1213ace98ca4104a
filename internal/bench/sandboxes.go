package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"sumepoller/internal/bench/database"
	"sumepoller/internal/bench/load"
	"sumepoller/internal/bench/report"
)

// sandboxes is one table under one, four and eight runs at once, each with the
// main setting's reads in flight.
func sandboxes(ctx context.Context, s *report.Section) error {
	w, err := newWorld(ctx, s)
	if err != nil {
		return err
	}
	defer w.stop()
	t := mainSetting
	s.Note("%d rows, %v in each sandbox, %d connections each; the rate is all reads from the first one's start to the last job's settling", t.jobs, t, conns)
	for range rounds {
		var one float64
		for _, n := range []int{1, 4, 8} {
			rate, overlapping, err := w.together(ctx, t, n)
			if err != nil {
				return fmt.Errorf("%d sandboxes: %w", n, err)
			}
			name := fmt.Sprintf("%d sandboxes: ", n)
			s.Take(name+"reads", "reads/s", report.Speed, rate)
			if n == 1 {
				one = rate
			} else {
				s.Take(name+"to one sandbox", "times", report.Ratio, rate/one)
			}
			s.Take(name+"jobs read twice at once", "jobs", report.Count, float64(overlapping))
		}
	}
	s.AtLeast("8 sandboxes: to one sandbox", 0.8)
	s.Never("8 sandboxes: jobs read twice at once", 0)
	return nil
}

// together runs n sandboxes on one fresh table.
func (w *world) together(ctx context.Context, t setting, n int) (rate float64, overlapping int, err error) {
	if err := w.answering(ctx, t.latency); err != nil {
		return 0, 0, err
	}
	d, err := w.db.Fresh(ctx)
	if err != nil {
		return 0, 0, err
	}
	defer d.Drop(ctx)
	if err := errors.Join(d.Fill(ctx, t.jobs), d.Checkpoint(ctx)); err != nil {
		return 0, 0, err
	}
	children := make([]*child, n)
	for i := range children {
		if children[i], err = spawn(roleLoad, nil); err != nil {
			return 0, 0, err
		}
		defer children[i].stop()
	}
	for _, c := range children {
		if err := c.tell(t.spec(load.Ours, d.URL, w.url)); err != nil {
			return 0, 0, err
		}
	}
	if err := awaitFinished(ctx, d); err != nil {
		return 0, 0, err
	}
	reads, first := 0, time.Time{}
	for _, c := range children {
		var r load.Result
		c.interrupt() // a run waits for leases of others that might run out
		if err := c.hear(&r); err != nil {
			return 0, 0, err
		}
		reads += r.Reads
		if first.IsZero() || r.Began.Before(first) {
			first = r.Began
		}
	}
	if reads != t.jobs {
		return 0, 0, fmt.Errorf("%d reads of %d jobs", reads, t.jobs)
	}
	var last time.Time
	if err := d.QueryRow(ctx, `SELECT max(finished_at) FROM video_jobs`).Scan(&last); err != nil {
		return 0, 0, err
	}
	stats, err := w.remote().Stats(ctx)
	return float64(reads) / last.Sub(first).Seconds(), stats.Overlapping, err
}

// awaitFinished waits until no job is pending.
func awaitFinished(ctx context.Context, d *database.Database) error {
	tick := time.NewTicker(200 * time.Millisecond)
	defer tick.Stop()
	for {
		if left, err := d.Pending(ctx); err != nil || left == 0 {
			return err
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}
