package main_test

import (
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"sumepoller/internal/devstack"
	"sumepoller/internal/submit"
	"sumepoller/internal/sume/sumetest"
)

const apiKey = "sk-sume-1234567890"

// sandbox starts the built function against the fixture.
func (m *fixture) sandbox(t *testing.T) *devstack.Function {
	t.Helper()
	bootstrap, err := devstack.Bootstrap(t.Context(), "submit")
	if err != nil {
		t.Fatal(err)
	}
	m.secrets.Set("sume-key", apiKey, false)
	f, err := devstack.StartFunction(t.Context(), "submit", bootstrap, map[string]string{
		"AWS_ACCESS_KEY_ID":                "test",
		"AWS_SECRET_ACCESS_KEY":            "test",
		"AWS_REGION":                       "eu-central-1",
		"AWS_ENDPOINT_URL_SECRETS_MANAGER": m.url,
		"SUME_API_KEY_SECRET_ID":           "sume-key",
		"SUME_API_BASE_URL":                m.url,
		"DATABASE_URL":                     m.databaseURL,
		"LOG_LEVEL":                        "error",
	}, time.Minute)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(f.Stop)
	return f
}

// payload returns the order of a key.
func payload(key string) []byte {
	return []byte(`{"video": ` + video + `, "idempotency_key": "` + key + `"}`)
}

// invoke returns the function's answer or the message of its error.
func invoke(t *testing.T, f *devstack.Function, payload []byte) (result submit.Result, failure string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	got, err := f.Invoke(ctx, payload)
	if err != nil {
		t.Fatal(err)
	}
	if got.Failure != nil {
		return submit.Result{}, got.Failure.Message
	}
	if err := json.Unmarshal(got.Payload, &result); err != nil {
		t.Fatalf("answer %s: %v", got.Payload, err)
	}
	return result, ""
}

// files returns the payloads in a directory of testdata, by path.
func files(t *testing.T, dir string) map[string][]byte {
	t.Helper()
	paths, err := filepath.Glob(filepath.Join("testdata", dir, "*.json"))
	if err != nil || len(paths) == 0 {
		t.Fatalf("no payloads in testdata/%s: %v", dir, err)
	}
	payloads := map[string][]byte{}
	for _, path := range paths {
		if payloads[path], err = os.ReadFile(path); err != nil {
			t.Fatal(err)
		}
	}
	return payloads
}

// checksums returns one line for each of the product's tables.
func (m *fixture) checksums(t *testing.T) []string {
	t.Helper()
	return m.rows(t, `
SELECT 'video_jobs ' || coalesce(md5(string_agg(r::text, ' ' ORDER BY r::text)), '-') FROM video_jobs r
UNION ALL
SELECT 'video_submissions ' || coalesce(md5(string_agg(r::text, ' ' ORDER BY r::text)), '-') FROM video_submissions r
UNION ALL
SELECT 'read_budget ' || coalesce(md5(string_agg(r::text, ' ' ORDER BY r::text)), '-') FROM read_budget r`)
}

func TestFunction_InvalidOrders(t *testing.T) {
	t.Parallel()
	m := newFixture(t, sumetest.Options{})
	f := m.sandbox(t)
	if _, failure := invoke(t, f, payload("order-1")); failure != "" {
		t.Fatal(failure)
	}
	before, posts := m.checksums(t), len(m.api.Stats().Posts)
	for path, payload := range files(t, "refused") {
		if _, failure := invoke(t, f, payload); !strings.HasPrefix(failure, "payload: ") || strings.Contains(failure, "\n") {
			t.Errorf("%s: got %q, want one line", path, failure)
		}
	}
	other := []byte(`{"idempotency_key": "order-1", "video": {"prompt": "b"}}`)
	if _, failure := invoke(t, f, other); !strings.HasPrefix(failure, "refused: ") {
		t.Errorf("another body: got %q", failure)
	}
	if diff := cmp.Diff(before, m.checksums(t)); diff != "" {
		t.Errorf("tables (-before +after):\n%s", diff)
	}
	if after := len(m.api.Stats().Posts); after != posts {
		t.Errorf("%d posts more", after-posts)
	}
}

func TestFunction_Answer(t *testing.T) {
	t.Parallel()
	m := newFixture(t, sumetest.Options{Keys: []string{apiKey}})
	f := m.sandbox(t)
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	order := files(t, "payloads")[filepath.Join("testdata", "payloads", "order.json")]
	for _, want := range []string{
		`{"job_id":"job_bought_1","state":"pending","idempotency_hit":false}`,
		`{"job_id":"job_bought_1","state":"pending","idempotency_hit":true}`,
	} {
		got, err := f.Invoke(ctx, order)
		if err != nil || got.Failure != nil || string(got.Payload) != want {
			t.Errorf("got %s, %v, %v; want %s", got.Payload, got.Failure, err, want)
		}
	}
	for path, payload := range files(t, "payloads") {
		if got, failure := invoke(t, f, payload); failure != "" || got.JobID != "job_bought_1" {
			t.Errorf("%s: got %+v, %s", path, got, failure)
		}
	}
	m.await(t, func() bool { return strings.Count(f.Log(), `"outcome":"accepted"`) == 4 }) // a line for each invocation
	for _, secret := range []string{apiKey, "paper boat", m.url, m.databaseURL, "order-42"} {
		if strings.Contains(f.Log(), secret) {
			t.Errorf("the log holds %q:\n%s", secret, f.Log())
		}
	}
	m.await(t, func() bool { return m.connections(t) == int(m.db.Stat().TotalConns()) }) // the test's own
}

func (m *fixture) connections(t *testing.T) int {
	t.Helper()
	return len(m.rows(t, `SELECT pid::text FROM pg_stat_activity WHERE datname = current_database()`))
}

func TestFunction_MissingSecrets(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		prepare func(m *fixture)
		says    string
	}{
		"no secret":                 {func(m *fixture) { m.secrets.Remove("sume-key") }, "secret: sume-key"},
		"placeholder in the secret": {func(m *fixture) { m.secrets.Set("sume-key", "REPLACE_ME", false) }, "secret: sume-key"},
		"refused key":               {func(m *fixture) { m.api.SetKeys("another") }, "unauthorized: "},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			m := newFixture(t, sumetest.Options{})
			f := m.sandbox(t)
			tt.prepare(m)
			if got, failure := invoke(t, f, payload("order-42")); !strings.HasPrefix(failure, tt.says) {
				t.Errorf("got %+v, %q; want %q", got, failure, tt.says)
			}
			if rows := m.rows(t, `SELECT job_id FROM video_jobs`); len(rows) != 0 {
				t.Errorf("rows %q", rows)
			}
		})
	}
}
