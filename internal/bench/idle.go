package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"time"

	"sumepoller/internal/bench/cgroup"
	"sumepoller/internal/bench/database"
	"sumepoller/internal/bench/load"
	"sumepoller/internal/bench/report"
	"sumepoller/internal/bench/sandbox"
	"sumepoller/internal/config"
)

const (
	secretID      = "sume-api-key"
	functionLimit = time.Minute
	warmTicks     = 5
)

// idle is what the function costs while there is nothing to do, and how late
// it is while there is little.
func idle(ctx context.Context, s *report.Section) error {
	w, err := newWorld(ctx, s)
	if err != nil {
		return err
	}
	defer w.stop()
	dir, err := os.MkdirTemp("", "sumepoller-bench-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	bootstrap, err := sizes(ctx, s, dir)
	if err != nil {
		return err
	}
	s.Note("the function's own binary behind an endpoint of Lambda's runtime; a table of 1,000 pending jobs, none due; " +
		"a tick fetches the key and connects anew where it has to, with a password and without TLS, on this machine. " +
		"Init: from the process's start to its first request for work")
	group, err := cgroup.New(0.145, 256<<20)
	if err != nil {
		s.Note("not measured at 0.145 of a core: %v", err)
	} else {
		defer group.Remove()
	}
	for range rounds {
		if err := w.ticks(ctx, s, bootstrap, "", nil); err != nil {
			return err
		}
		if group != nil {
			if err := w.ticks(ctx, s, bootstrap, "0.145 of a core: ", group); err != nil {
				return err
			}
		}
		if err := w.lateness(ctx, s); err != nil {
			return err
		}
	}
	s.AtMost("idle tick, warm", 300)
	s.AtMost("0.145 of a core: idle tick, warm", 300)
	s.AtMost("idle tick: statements", 8)
	s.Never("idle tick: connections after it", 0)
	s.AtMost("a row due every 50 ms: p99 late", 250)
	s.Never("a row due every 50 ms: read early", 0)
	return nil
}

// sizes builds the function as make build does, for Lambda and for this
// machine, and takes the size of the first.
func sizes(ctx context.Context, s *report.Section, dir string) (bootstrap string, err error) {
	for _, arch := range []string{"arm64", ""} {
		bootstrap = filepath.Join(dir, "bootstrap"+arch)
		cmd := exec.CommandContext(ctx, "go", "build", "-trimpath", "-buildvcs=false",
			"-ldflags", "-s -w", "-tags", "lambda.norpc", "-o", bootstrap, "sumepoller/functions/poller")
		cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
		if arch != "" {
			cmd.Env = append(cmd.Env, "GOOS=linux", "GOARCH="+arch)
		}
		if out, err := cmd.CombinedOutput(); err != nil {
			return "", fmt.Errorf("build the poller: %w: %s", err, out)
		}
		if arch != "" {
			info, err := os.Stat(bootstrap)
			if err != nil {
				return "", err
			}
			s.Take("size of the binary, arm64", "MiB", report.Size, float64(info.Size())/(1<<20))
		}
	}
	return bootstrap, nil
}

// ticks starts a sandbox cold, ticks it idle and, on the whole machine, gives
// it work once.
func (w *world) ticks(ctx context.Context, s *report.Section, bootstrap, name string, group *cgroup.Group) error {
	if err := errors.Join(w.answering(ctx, 0), w.remote().SetSecret(ctx, secretID, "bench")); err != nil {
		return err
	}
	d, err := w.db.Fresh(ctx)
	if err != nil {
		return err
	}
	defer d.Drop(ctx)
	if err := waiting(ctx, d, 1000); err != nil {
		return err
	}
	function, err := sandbox.Start(ctx, bootstrap, w.environment(d.URL), group)
	if err != nil {
		return err
	}
	defer function.Stop()
	s.Take(name+"init", "ms", report.Time, milliseconds(function.Init))
	_, took, err := function.Invoke(ctx, `{}`, functionLimit)
	if err != nil {
		return err
	}
	s.Take(name+"idle tick, the first", "ms", report.Time, milliseconds(took))
	before, err := d.Counters(ctx)
	if err != nil {
		return err
	}
	var warm []float64
	for range warmTicks {
		_, took, err := function.Invoke(ctx, `{}`, functionLimit)
		if err != nil {
			return err
		}
		warm = append(warm, milliseconds(took))
	}
	s.Take(name+"idle tick, warm", "ms", report.Time, load.Quantile(warm, 0.5))
	if group != nil {
		return nil
	}
	return w.rest(ctx, s, d, function, before)
}

// rest takes what ticks left behind, and the memory at rest and under load.
func (w *world) rest(ctx context.Context, s *report.Section, d *database.Database, function *sandbox.Sandbox, before database.Counters) error {
	after, err := d.Counters(ctx)
	if err != nil {
		return err
	}
	left, err := d.Connections(ctx)
	if err != nil {
		return err
	}
	s.Take("idle tick: statements", "statements", report.Count, after.Since(before).Statements/warmTicks)
	s.Take("idle tick: WAL", "bytes", report.Count, after.Since(before).WAL/warmTicks)
	s.Take("idle tick: connections after it", "connections", report.Count, float64(left))
	now, _ := function.Memory()
	if now == 0 {
		return nil
	}
	s.Take("memory at rest", "MiB", report.Size, float64(now)/(1<<20))
	if err := d.Fill(ctx, 5_000); err != nil {
		return err
	}
	if _, _, err := function.Invoke(ctx, `{}`, functionLimit); err != nil {
		return err
	}
	_, most := function.Memory()
	s.Take("memory under load, 64 in flight", "MiB", report.Size, float64(most)/(1<<20))
	return nil
}

// waiting inserts jobs that are not due for hours.
func waiting(ctx context.Context, d *database.Database, n int) error {
	_, err := d.Exec(ctx, `
		INSERT INTO video_jobs (job_id, next_poll_at)
		SELECT 'later_' || g, now() + interval '5 hours' FROM generate_series(1, $1::integer) AS g`, n)
	return err
}

// environment is the function's.
func (w *world) environment(databaseURL string) map[string]string {
	return map[string]string{
		config.APIKeySecretID: secretID, config.APIBaseURL: w.url + "/v1", config.DatabaseURL: databaseURL,
		config.ReadsPerMinute: "0", config.ReadsPerDay: "1000000000",
		config.FunctionName: "poller", config.FunctionMemory: "256",
		"AWS_REGION": "us-east-1", "AWS_ACCESS_KEY_ID": "simulated", "AWS_SECRET_ACCESS_KEY": "simulated",
		"AWS_EC2_METADATA_DISABLED": "true", "AWS_ENDPOINT_URL_SECRETS_MANAGER": w.url,
	}
}

// lateness has one run wait for rows that become due every 50 ms.
func (w *world) lateness(ctx context.Context, s *report.Section) error {
	const rows = 100
	if err := w.answering(ctx, 50*time.Millisecond); err != nil {
		return err
	}
	d, err := w.db.Fresh(ctx)
	if err != nil {
		return err
	}
	defer d.Drop(ctx)
	if _, err := d.Exec(ctx, `
		INSERT INTO video_jobs (job_id, next_poll_at)
		SELECT 'job_' || g, now() + interval '1 second' + g * interval '50 milliseconds'
		FROM generate_series(1, $1::integer) AS g`, rows); err != nil {
		return err
	}
	t := setting{inFlight: 64, jobs: rows}
	spec := t.spec(load.Ours, d.URL, w.url)
	spec.Watch = true
	r, err := do[load.Result](roleLoad, nil, spec)
	if err != nil {
		return err
	}
	if r.Reads != rows {
		return fmt.Errorf("%d reads of %d rows, %s", r.Reads, rows, r.Stopped)
	}
	s.Take("a row due every 50 ms: p50 late", "ms", report.Time, 1000*load.Quantile(r.Late, 0.5))
	s.Take("a row due every 50 ms: p99 late", "ms", report.Time, 1000*load.Quantile(r.Late, 0.99))
	s.Take("a row due every 50 ms: read early", "rows", report.Count, float64(r.Early))
	return nil
}

func milliseconds(d time.Duration) float64 { return float64(d.Microseconds()) / 1000 }
