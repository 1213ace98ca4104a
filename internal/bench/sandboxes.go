package main

import (
	"context"
	"errors"
	"fmt"
	"time"

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
	s.Note("%d rows, %v in each sandbox, %d connections each; the rate is all reads from the first one's start to the last one's end", t.jobs, t, conns)
	for range rounds {
		var one float64
		for _, n := range []int{1, 4, 8} {
			rate, overlapping, err := w.together(ctx, t, n)
			if err != nil {
				return fmt.Errorf("%d sandboxes: %w", n, err)
			}
			if n == 1 {
				one = rate
			}
			name := fmt.Sprintf("%d sandboxes: ", n)
			s.Take(name+"reads", "reads/s", report.Speed, rate)
			s.Take(name+"to one sandbox", "times", report.Ratio, rate/one)
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
	var first, last time.Time
	reads := 0
	for _, c := range children {
		var r load.Result
		if err := c.hear(&r); err != nil {
			return 0, 0, err
		}
		reads += r.Reads
		if first.IsZero() || r.Began.Before(first) {
			first = r.Began
		}
		if r.Ended.After(last) {
			last = r.Ended
		}
	}
	left, err := d.Pending(ctx)
	if err != nil || left > 0 || reads != t.jobs {
		return 0, 0, errors.Join(err, fmt.Errorf("%d of %d jobs left after %d reads", left, t.jobs, reads))
	}
	stats, err := w.remote().Stats(ctx)
	return float64(reads) / last.Sub(first).Seconds(), stats.Overlapping, err
}
