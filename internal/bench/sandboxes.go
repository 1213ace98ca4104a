package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os/exec"
	"syscall"
	"time"

	"sumepoller/internal/bench/database"
	"sumepoller/internal/bench/load"
)

// sandboxes measures one, four and eight runs at the same time on one table.
// The rate is all reads from the first run's start to the last job's end.
func sandboxes(ctx context.Context, s *scene) error {
	u, err := newSetup(ctx, s)
	if err != nil {
		return err
	}
	defer u.stop()
	for range rounds {
		var one float64
		for _, n := range []int{1, 4, 8} {
			rate, err := u.together(ctx, n)
			if err != nil {
				return fmt.Errorf("%d sandboxes: %w", n, err)
			}
			name := fmt.Sprintf("%d sandboxes: ", n)
			s.add(name+"reads", "reads/s", rate)
			if n == 1 {
				one = rate
			} else {
				s.add(name+"to one sandbox", "times", rate/one)
			}
		}
	}
	return nil
}

// together runs n sandboxes on one fresh table, and returns their reads a second.
func (u *setup) together(ctx context.Context, n int) (rate float64, err error) {
	t := mainSetting
	u.resetAPI(t.latency)
	d, err := u.db.Fresh(ctx)
	if err != nil {
		return 0, err
	}
	defer d.Drop(ctx)
	if err := errors.Join(d.Fill(ctx, t.jobs), d.Checkpoint(ctx)); err != nil {
		return 0, err
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	children, results := make([]*exec.Cmd, n), make([]bytes.Buffer, n)
	for i := range children {
		if children[i], err = command(ctx, roleLoad, t.spec(load.Poller, d.URL, u.server.URL)); err != nil {
			return 0, err
		}
		children[i].Stdout = &results[i]
		if err := children[i].Start(); err != nil {
			return 0, err
		}
	}
	if err := awaitFinished(ctx, d); err != nil {
		return 0, err
	}
	reads, first := 0, time.Now()
	for i, c := range children {
		_ = c.Process.Signal(syscall.SIGTERM) // a run would wait for leases of others that might expire
		if err := c.Wait(); err != nil {
			return 0, err
		}
		var r load.Result
		if err := json.Unmarshal(results[i].Bytes(), &r); err != nil {
			return 0, err
		}
		reads += r.Reads
		if r.Began.Before(first) {
			first = r.Began
		}
	}
	if twice := u.api.Stats().Overlapping; reads != t.jobs || twice > 0 {
		return 0, fmt.Errorf("%d reads of %d jobs, %d during another read of the same job", reads, t.jobs, twice)
	}
	var last time.Time
	err = d.QueryRow(ctx, `SELECT max(finished_at) FROM video_jobs`).Scan(&last)
	return float64(reads) / last.Sub(first).Seconds(), err
}

// awaitFinished waits until no job is pending.
func awaitFinished(ctx context.Context, d *database.Database) error {
	for {
		if left, err := d.Pending(ctx); err != nil || left == 0 {
			return err
		}
		time.Sleep(200 * time.Millisecond)
	}
}
