package main_test

import (
	"context"
	"net/http"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"sumepoller/internal/pgtest"
	"sumepoller/internal/postgres/submissions"
	"sumepoller/internal/submit"
	"sumepoller/internal/sume"
	"sumepoller/internal/sume/sumetest"
)

// fixture is a database and a simulated API that sells jobs.
type fixture struct {
	databaseURL string
	db          *pgxpool.Pool
	api         *sumetest.API
	secrets     *sumetest.Secrets
	url         string // of the API and the secrets manager
	store       submit.Store
	client      *sume.Client
	onPost      atomic.Pointer[func()] // called when a post arrives
}

const video = "{ \"prompt\":  \"a\",\n\"b\":1.10, \"a\" : 2 }"

func newFixture(t *testing.T, o sumetest.Options) *fixture {
	t.Helper()
	m := &fixture{databaseURL: pgtest.URL(t), api: sumetest.New(o), secrets: sumetest.NewSecrets()}
	m.db = pgtest.Pool(t, m.databaseURL)
	handler := sumetest.Handler(m.api, m.secrets)
	server, err := sumetest.Listen(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if call := m.onPost.Load(); call != nil && r.URL.Path == "/v1/videos" {
			(*call)()
		}
		handler.ServeHTTP(w, r)
	}))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(server.Close)
	m.url = server.URL
	m.store = submissions.New(m.db)
	m.client, err = sume.NewClient(sume.Config{BaseURL: m.url + "/v1", KeyHeader: "X-Api-Key: ", Timeout: 15 * time.Second}, &keys{"first", "second"})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(m.client.CloseIdle)
	return m
}

// keys returns its first key, and after a 401 its second.
type keys struct{ first, second string }

func (k *keys) Key(context.Context) (string, error) { return k.first, nil }

func (k *keys) Renew(context.Context, string) (string, error) {
	k.first = k.second
	return k.first, nil
}

func (m *fixture) submitter() submit.Submitter {
	return submit.Submitter{Store: m.store, Poster: m.client, Timeout: 15 * time.Second, Backoff: time.Millisecond}
}

// buy submits the order of a key.
func (m *fixture) buy(t *testing.T, key string) (submit.Result, error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	s := m.submitter()
	return s.Submit(ctx, submit.Request{Key: key, Video: []byte(video)})
}

// buyBriefly is buy for order-42, with little time for more posts.
func (m *fixture) buyBriefly(t *testing.T) (submit.Result, error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 3*time.Second)
	defer cancel()
	s := m.submitter()
	s.Backoff = 500 * time.Millisecond
	return s.Submit(ctx, submit.Request{Key: "order-42", Video: []byte(video)})
}

func (m *fixture) exec(t *testing.T, sql string) {
	t.Helper()
	if _, err := m.db.Exec(t.Context(), sql); err != nil {
		t.Fatal(err)
	}
}

// rows returns the only column of a query.
func (m *fixture) rows(t *testing.T, sql string, args ...any) []string {
	t.Helper()
	rows, err := m.db.Query(t.Context(), sql, args...)
	if err != nil {
		t.Fatal(err)
	}
	got, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if err != nil {
		t.Fatal(err)
	}
	return got
}

// posts returns the posts of a key and the jobs that they created or found.
func (m *fixture) posts(key string) (posts []sumetest.Post, jobs map[string]bool) {
	jobs = map[string]bool{}
	for _, post := range m.api.Stats().Posts {
		if post.Key == key {
			posts = append(posts, post)
			if post.JobID != "" {
				jobs[post.JobID] = true
			}
		}
	}
	return posts, jobs
}

// wantSettled checks a finished order: one job billed, one row, accepted, and
// every post with the same bytes.
func (m *fixture) wantSettled(t *testing.T, key string) {
	t.Helper()
	posts, jobs := m.posts(key)
	for _, post := range posts {
		if post.Body != video {
			t.Errorf("%s: posted %q, want %q", key, post.Body, video)
		}
	}
	got := m.rows(t, `
SELECT concat_ws(' ', s.state, j.job_id, j.state, s.request::text = $2, coalesce(s.last_error, '-'))
FROM video_submissions s JOIN video_jobs j ON j.idempotency_key = s.idempotency_key AND j.job_id = s.job_id
WHERE s.idempotency_key = $1`, key, video)
	rows := m.rows(t, `SELECT job_id FROM video_jobs WHERE idempotency_key = $1`, key)
	for job := range jobs {
		if len(jobs) != 1 || len(got) != 1 || got[0] != "accepted "+job+" pending t -" || len(rows) != 1 {
			t.Errorf("%s: jobs sold %v, rows %q, submission %q", key, jobs, rows, got)
		}
	}
	if len(jobs) == 0 {
		t.Errorf("%s: no job was sold", key)
	}
}
