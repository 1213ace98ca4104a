package main

import (
	"cmp"
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"sumepoller/internal/operator"
	"sumepoller/internal/poller"
	"sumepoller/internal/secrets"
	"sumepoller/internal/sume/sumetest"
)

func TestPayload_Modes(t *testing.T) {
	t.Parallel()
	payloads := map[string]string{"nothing": "", "null": "null"}
	files, err := filepath.Glob("testdata/payloads/*.json")
	if err != nil || len(files) == 0 {
		t.Fatalf("%d payloads, error %v", len(files), err)
	}
	for _, file := range files {
		payload, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		payloads[file] = string(payload)
	}
	w := newWorld(t, "POLL_BUDGET=1s")
	for name, payload := range payloads {
		want, err := operator.ParseRequest([]byte(payload))
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		answer, err := w.invoke(t, t.Context(), payload)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		got := decode[struct {
			RunID string `json:"run_id"`
			Mode  string `json:"mode"`
		}](t, answer)
		if wantMode := cmp.Or(want.Mode, poller.ModeScheduled); got.Mode != wantMode || got.RunID != "req-1" {
			t.Errorf("%s: run %q, mode %q; want %q", name, got.RunID, got.Mode, wantMode)
		}
	}
}

func TestPayload_Invalid(t *testing.T) {
	t.Parallel()
	files, err := filepath.Glob("testdata/refused/*.json")
	if err != nil || len(files) == 0 {
		t.Fatalf("%d payloads, error %v", len(files), err)
	}
	w := newWorld(t)
	w.jobs(t, sumetest.Plan{}, "job_1")
	for _, file := range files {
		payload, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		if answer, err := w.invoke(t, t.Context(), string(payload)); err == nil {
			t.Errorf("%s: answered %s", file, answer)
		}
	}
	w.untouched(t)
}

func TestPayload_WithoutAPIKey(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.api.AddJob("job_1", sumetest.Plan{})
	answer, err := w.invoke(t, t.Context(), `{"backfill": {"job_ids": ["job_1"]}}`)
	if err != nil {
		t.Fatal(err)
	}
	if got := decode[poller.Summary](t, answer); got.Registered != 1 || got.Finished["completed"] != 1 {
		t.Errorf("backfill %s", answer)
	}
	w.vault.Remove(keyID)
	w.handler.key = secrets.NewAPIKey(secrets.NewCache(noSecret{}), keyID)
	w.jobs(t, sumetest.Plan{}, "job_2")
	for payload, want := range map[string]string{
		`{"backfill": {"states": ["completed"], "dry_run": true}}`: `"reopened":1`,
		`{"inspect": {"job_ids": ["job_1"]}}`:                      `"completed":1`,
		`{"stop": {"job_ids": ["job_2"]}}`:                         `"finished":{"stopped":1}`,
	} {
		if answer, err := w.invoke(t, t.Context(), payload); err != nil || !strings.Contains(string(answer), want) {
			t.Errorf("%s: error %v, answer %s, want %s in it", payload, err, answer, want)
		}
	}
}

type noSecret struct{}

func (noSecret) Fetch(context.Context, string) (string, error) {
	return "", errors.New("no such secret")
}
