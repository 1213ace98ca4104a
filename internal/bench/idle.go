package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"time"

	"sumepoller/internal/bench/database"
	"sumepoller/internal/bench/sandbox"
	"sumepoller/internal/config"
)

const (
	secretID   = "sume-api-key"
	warmTicks  = 5
	tickLimit  = time.Minute // of an invocation
	idleJobs   = 1_000       // pending, none due
	loadedJobs = 5_000       // due
)

// idle measures what the function costs while nothing is due.
func idle(ctx context.Context, s *scene) error {
	u, err := newSetup(ctx, s)
	if err != nil {
		return err
	}
	defer u.stop()
	dir, err := os.MkdirTemp("", "sumepoller-bench-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	bootstrap, err := build(ctx, dir, "")
	if err != nil {
		return err
	}
	deployed, err := build(ctx, dir, "arm64")
	if err != nil {
		return err
	}
	info, err := os.Stat(deployed)
	if err != nil {
		return err
	}
	s.add("size of the binary, arm64", "MiB", mebibytes(info.Size()))
	for range rounds {
		if err := u.ticks(ctx, s, bootstrap); err != nil {
			return err
		}
	}
	return nil
}

// build builds the poller as make build does; arch is empty for this machine.
func build(ctx context.Context, dir, arch string) (bootstrap string, err error) {
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
	return bootstrap, nil
}

// ticks starts a sandbox and ticks it while nothing is due. It measures what the
// ticks cost the database, and the memory at rest and under load.
func (u *setup) ticks(ctx context.Context, s *scene, bootstrap string) error {
	u.resetAPI(0)
	u.secrets.Set(secretID, "bench", false)
	d, err := u.db.Fresh(ctx)
	if err != nil {
		return err
	}
	defer d.Drop(ctx)
	if _, err := d.Exec(ctx, `
		INSERT INTO video_jobs (job_id, next_poll_at)
		SELECT 'later_' || g, now() + interval '5 hours' FROM generate_series(1, $1::integer) AS g`, idleJobs); err != nil {
		return err
	}
	function, err := sandbox.Start(ctx, bootstrap, u.environment(d.URL))
	if err != nil {
		return err
	}
	defer function.Stop()
	s.add("init", "ms", milliseconds(function.Init))
	took, err := function.Invoke(ctx, `{}`, tickLimit)
	if err != nil {
		return err
	}
	s.add("first idle tick", "ms", milliseconds(took))
	if err := d.ResetCounters(ctx); err != nil {
		return err
	}
	var warm []time.Duration
	for range warmTicks {
		took, err := function.Invoke(ctx, `{}`, tickLimit)
		if err != nil {
			return err
		}
		warm = append(warm, took)
	}
	slices.Sort(warm)
	s.add("idle tick", "ms", milliseconds(warm[warmTicks/2]))
	cost, err := d.Counters(ctx)
	if err != nil {
		return err
	}
	if err := awaitDisconnected(ctx, d); err != nil {
		return err
	}
	s.add("idle tick: statements", "", cost.Statements/warmTicks)
	atRest, _ := function.Memory()
	if atRest == 0 {
		return nil
	}
	if err := d.Fill(ctx, loadedJobs); err != nil {
		return err
	}
	if _, err := function.Invoke(ctx, `{}`, tickLimit); err != nil {
		return err
	}
	_, most := function.Memory()
	s.add("memory at rest", "MiB", mebibytes(atRest))
	s.add("memory under load, 64 in flight", "MiB", mebibytes(most))
	return nil
}

// awaitDisconnected checks that the tick left no connection open. The server
// may take a moment to end the session of a closed one.
func awaitDisconnected(ctx context.Context, d *database.Database) error {
	for end := time.Now().Add(time.Second); ; time.Sleep(10 * time.Millisecond) {
		if left, err := d.Connections(ctx); err != nil || left == 0 {
			return err
		}
		if time.Now().After(end) {
			return errors.New("an idle tick left a connection open")
		}
	}
}

func (u *setup) environment(databaseURL string) map[string]string {
	return map[string]string{
		config.APIKeySecretID: secretID, config.APIBaseURL: u.server.URL + "/v1", config.DatabaseURL: databaseURL,
		config.ReadsPerMinute: "0", config.ReadsPerDay: "1000000000",
		config.FunctionName: "poller", config.FunctionMemory: "256",
		"AWS_REGION": "us-east-1", "AWS_ACCESS_KEY_ID": "simulated", "AWS_SECRET_ACCESS_KEY": "simulated",
		"AWS_EC2_METADATA_DISABLED": "true", "AWS_ENDPOINT_URL_SECRETS_MANAGER": u.server.URL,
	}
}

func milliseconds(d time.Duration) float64 { return float64(d.Microseconds()) / 1000 }

func mebibytes(n int64) float64 { return float64(n) / (1 << 20) }
