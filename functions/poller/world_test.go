package main

import (
	"bytes"
	"context"
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"github.com/aws/aws-lambda-go/lambdacontext"
	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/jackc/pgx/v5/pgxpool"

	"sumepoller/internal/config"
	"sumepoller/internal/pgtest"
	"sumepoller/internal/poller"
	"sumepoller/internal/secrets"
	"sumepoller/internal/sume/sumetest"
)

const (
	keyID  = "sume/key"
	apiKey = "sk_test_4242424242"
)

// world is a handler with a database, a simulated API and Secrets Manager.
type world struct {
	*handler
	api            *sumetest.API
	vault          *sumetest.Secrets
	db             *pgxpool.Pool
	stdout, stderr bytes.Buffer
}

// newWorld makes a world with a key that the API accepts. environ overrides the
// variables.
func newWorld(t *testing.T, environ ...string) *world {
	t.Helper()
	url := pgtest.URL(t)
	w := &world{api: sumetest.New(sumetest.Options{Keys: []string{apiKey}}), vault: sumetest.NewSecrets(), db: pgtest.Pool(t, url)}
	w.vault.Set(keyID, apiKey+"\n", false)
	server, err := sumetest.Listen(sumetest.Handler(w.api, w.vault))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(server.Close)
	cfg, err := config.LoadPoller(append([]string{
		"SUME_API_KEY_SECRET_ID=" + keyID, "SUME_API_BASE_URL=" + server.URL, "DATABASE_URL=" + url, "POLL_BUDGET=5s",
		"SUME_READS_PER_DAY=0",
	}, environ...))
	if err != nil {
		t.Fatal(err)
	}
	manager := secrets.NewManagerFrom(aws.Config{
		Region: "eu-central-1", BaseEndpoint: &server.URL,
		Credentials: credentials.NewStaticCredentialsProvider("id", "secret", ""),
	})
	w.handler, err = newHandler(cfg, "sume-poller", secrets.NewCache(manager), &w.stdout, &w.stderr)
	if err != nil {
		t.Fatal(err)
	}
	return w
}

// jobs adds due rows, and their jobs with this plan to the API.
func (w *world) jobs(t *testing.T, plan sumetest.Plan, ids ...string) {
	t.Helper()
	for _, id := range ids {
		w.api.AddJob(id, plan)
	}
	const insert = `INSERT INTO video_jobs (job_id, next_poll_at) SELECT id, now() FROM unnest($1::text[]) AS id`
	if _, err := w.db.Exec(t.Context(), insert, ids); err != nil {
		t.Fatal(err)
	}
}

// untouched wants every row pending, without a lease, and no read or error counted.
func (w *world) untouched(t *testing.T) {
	t.Helper()
	const charged = `SELECT count(*) FROM video_jobs
		WHERE state <> 'pending' OR polls > 0 OR consecutive_errors > 0 OR last_error IS NOT NULL OR leased_until > now()`
	var n int
	if err := w.db.QueryRow(t.Context(), charged).Scan(&n); err != nil || n > 0 {
		t.Errorf("%d rows were changed (error %v)", n, err)
	}
}

// invoke calls the handler as Lambda does.
func (w *world) invoke(t *testing.T, ctx context.Context, payload string) (answer []byte, err error) {
	t.Helper()
	w.stdout.Reset()
	w.stderr.Reset()
	ctx = lambdacontext.NewContext(ctx, &lambdacontext.LambdaContext{AwsRequestID: "req-1"})
	answer, err = w.Invoke(ctx, []byte(payload))
	w.checkOutput(t)
	return answer, err
}

// checkOutput wants one line of metrics, one summary line and no secret.
func (w *world) checkOutput(t *testing.T) {
	t.Helper()
	if out := w.stdout.String(); !strings.HasPrefix(out, "{") || !strings.HasSuffix(out, "}\n") || strings.Count(out, "\n") != 1 {
		t.Errorf("standard output is not one line of metrics: %s", out)
	}
	if n := strings.Count(w.stderr.String(), `"message":"run"`); n != 1 {
		t.Errorf("%d summary lines: %s", n, &w.stderr)
	}
	for _, out := range []string{w.stdout.String(), w.stderr.String()} {
		if strings.Contains(out, apiKey) || strings.Contains(out, "postgres://") || strings.Contains(out, sumetest.SignedURL) {
			t.Errorf("a secret is in %s", out)
		}
	}
}

// run invokes a scheduled run and returns its summary.
func (w *world) run(t *testing.T) poller.Summary {
	t.Helper()
	answer, err := w.invoke(t, t.Context(), `{}`)
	if err != nil {
		t.Fatal(err)
	}
	return decode[poller.Summary](t, answer)
}

// metrics returns the names in the last line of metrics, sorted.
func (w *world) metrics(t *testing.T) []string {
	t.Helper()
	line := decode[map[string]any](t, w.stdout.Bytes())
	var names []string
	for name := range line {
		if name != "_aws" && name != "FunctionName" {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names
}

func decode[T any](t *testing.T, data []byte) (v T) {
	t.Helper()
	if err := json.Unmarshal(data, &v); err != nil {
		t.Fatalf("%v in %s", err, data)
	}
	return v
}
