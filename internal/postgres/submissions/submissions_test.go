package submissions_test

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"sumepoller/internal/pgtest"
	"sumepoller/internal/postgres/submissions"
	"sumepoller/internal/submit"
)

// newStore returns a store over a fresh database.
func newStore(t *testing.T) (*submissions.Store, *pgxpool.Pool) {
	t.Helper()
	pool := pgtest.Pool(t, pgtest.URL(t))
	return submissions.New(pool), pool
}

func openSubmission(t *testing.T, store submit.Store, key, request string) submit.Submission {
	t.Helper()
	sub, err := store.Open(t.Context(), key, []byte(request))
	if err != nil {
		t.Fatal(err)
	}
	return sub
}

func markSubmission(t *testing.T, store submit.Store, key string, outcome submit.Outcome) submit.Submission {
	t.Helper()
	sub, err := store.Mark(t.Context(), key, outcome)
	if err != nil {
		t.Fatal(err)
	}
	return sub
}

var noCredits = submit.Outcome{State: submit.Rejected, HTTPStatus: 402, Unanswered: true, LastError: "no credits"}

func acceptSubmission(t *testing.T, store submit.Store, key, jobID string) submit.Submission {
	t.Helper()
	sub, err := store.Accept(t.Context(), key, jobID)
	if err != nil {
		t.Fatal(err)
	}
	return sub
}

func runSQL(t *testing.T, pool *pgxpool.Pool, sql string, args ...any) {
	t.Helper()
	if _, err := pool.Exec(t.Context(), sql, args...); err != nil {
		t.Fatal(err)
	}
}

// submittedRows returns the rows of video_jobs as text, without their times.
func submittedRows(t *testing.T, pool *pgxpool.Pool) []string {
	t.Helper()
	rows, err := pool.Query(t.Context(), `
SELECT concat_ws(' ', job_id, state, coalesce(idempotency_key, '-'), polls, lost_leases,
                 next_poll_at > now() AND next_poll_at <= now() + interval '15 seconds', created_at IS NOT NULL)
FROM video_jobs ORDER BY job_id`)
	if err != nil {
		t.Fatal(err)
	}
	got, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if err != nil {
		t.Fatal(err)
	}
	return got
}

func TestOpen_Verbatim(t *testing.T) {
	t.Parallel()
	store, _ := newStore(t)
	requests := map[string]string{
		"whitespace":   "{ \"b\" :  1,\r\n\t\"a\":2 }",
		"a name twice": `{"a":1,"a":2}`,
		"numbers":      `{"a":1.10,"b":1e400,"c":-0,"d":12345678901234567890}`,
		"escapes":      `{"a":"\u00e9é\/\u0000\ud800 \\ ' $1"}`,
		"depth":        `{"a":` + strings.Repeat("[", 2000) + strings.Repeat("]", 2000) + `}`,
		"length":       `{"a":"` + strings.Repeat("é", 1<<20) + `"}`,
	}
	for name, request := range requests {
		for _, new := range []bool{true, false} {
			sub := openSubmission(t, store, name, request)
			if string(sub.Request) != request || sub.New != new || sub.State != submit.Sending {
				t.Errorf("%s, new %v: got %.100s, %v, %s", name, new, sub.Request, sub.New, sub.State)
			}
		}
	}
	if sub := openSubmission(t, store, "whitespace", `{"another": 1}`); string(sub.Request) != requests["whitespace"] {
		t.Errorf("a second body replaced the first: %s", sub.Request)
	}
}

func TestOpen_Concurrent(t *testing.T) {
	t.Parallel()
	store, _ := newStore(t)
	var (
		wg sync.WaitGroup
		mu sync.Mutex
	)
	fresh, requests := 0, map[string]bool{}
	for i := range 8 {
		wg.Go(func() {
			sub, err := store.Open(t.Context(), "order-42", fmt.Appendf(nil, `{"n": %d}`, i))
			mu.Lock()
			defer mu.Unlock()
			if err != nil {
				t.Error(err)
			}
			if sub.New {
				fresh++
			}
			requests[string(sub.Request)] = true
		})
	}
	wg.Wait()
	if fresh != 1 || len(requests) != 1 {
		t.Errorf("%d of 8 wrote the intent, with the requests %v", fresh, requests)
	}
}

func TestAccept(t *testing.T) {
	t.Parallel()
	const job = "job_1 pending order-42 0 0 t t"
	tests := map[string]struct {
		before func(t *testing.T, store submit.Store, pool *pgxpool.Pool)
		want   submit.Submission
		rows   []string
	}{
		"a new job": {
			func(*testing.T, submit.Store, *pgxpool.Pool) {},
			submit.Submission{State: submit.Accepted, JobID: "job_1", JobState: "pending"},
			[]string{job},
		},
		"asked again": {
			func(t *testing.T, store submit.Store, _ *pgxpool.Pool) {
				acceptSubmission(t, store, "order-42", "job_1")
			},
			submit.Submission{State: submit.Accepted, JobID: "job_1", JobState: "pending"},
			[]string{job},
		},
		"rejected after a concurrent post": {
			func(t *testing.T, store submit.Store, _ *pgxpool.Pool) {
				markSubmission(t, store, "order-42", noCredits)
			},
			submit.Submission{State: submit.Accepted, JobID: "job_1", JobState: "pending"},
			[]string{job},
		},
		"another job accepted before": {
			func(t *testing.T, store submit.Store, _ *pgxpool.Pool) {
				acceptSubmission(t, store, "order-42", "job_0")
			},
			submit.Submission{State: submit.Accepted, JobID: "job_0", JobState: "pending"},
			[]string{"job_0 pending order-42 0 0 t t", job},
		},
		"killed once the id was kept": {
			func(t *testing.T, store submit.Store, _ *pgxpool.Pool) {
				if err := store.Keep(t.Context(), "order-42", "job_1"); err != nil {
					t.Fatal(err)
				}
			},
			submit.Submission{State: submit.Accepted, JobID: "job_1", JobState: "pending"},
			[]string{job},
		},
		"another job's id kept before": {
			func(t *testing.T, store submit.Store, _ *pgxpool.Pool) {
				if err := store.Keep(t.Context(), "order-42", "job_0"); err != nil {
					t.Fatal(err)
				}
			},
			submit.Submission{State: submit.Sending, JobID: "job_0"},
			[]string{job},
		},
		"unrecorded": {
			func(t *testing.T, store submit.Store, _ *pgxpool.Pool) {
				if sub, err := store.Unrecord(t.Context(), "order-42", "job_1", "no room"); err != nil || sub.State != submit.Unrecorded || sub.LastError != "no room" {
					t.Fatalf("got %+v, %v", sub, err)
				}
			},
			submit.Submission{State: submit.Accepted, JobID: "job_1", JobState: "pending"},
			[]string{job},
		},
		"row inserted by a person, table refuses": {
			func(t *testing.T, _ submit.Store, pool *pgxpool.Pool) {
				runSQL(t, pool, `INSERT INTO video_jobs (job_id) VALUES ('job_1'); ALTER TABLE video_jobs ADD COLUMN customer_id bigint NOT NULL DEFAULT 7;
				                 ALTER TABLE video_jobs ALTER COLUMN customer_id DROP DEFAULT`)
			},
			submit.Submission{State: submit.Accepted, JobID: "job_1", JobState: "pending"},
			[]string{"job_1 pending - 0 0 t t"},
		},
		"row finished already": {
			func(t *testing.T, _ submit.Store, pool *pgxpool.Pool) {
				runSQL(t, pool, `INSERT INTO video_jobs (job_id, state, polls) VALUES ('job_1', 'completed', 7)`)
			},
			submit.Submission{State: submit.Accepted, JobID: "job_1", JobState: "completed"},
			[]string{"job_1 completed - 7 0 t t"},
		},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			store, pool := newStore(t)
			openSubmission(t, store, "order-42", `{"p": 1}`)
			tt.before(t, store, pool)
			got := acceptSubmission(t, store, "order-42", "job_1")
			got.Age, tt.want.Request = 0, []byte(`{"p": 1}`)
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Errorf("submission (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(tt.rows, submittedRows(t, pool)); diff != "" {
				t.Errorf("rows (-want +got):\n%s", diff)
			}
		})
	}
}

func TestAccept_LockedRow(t *testing.T) {
	t.Parallel()
	store, pool := newStore(t)
	openSubmission(t, store, "order-42", `{"p": 1}`)
	runSQL(t, pool, `INSERT INTO video_jobs (job_id) VALUES ('job_1')`)
	held, err := pool.Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = held.Rollback(context.WithoutCancel(t.Context())) }()
	if _, err := held.Exec(t.Context(), `SELECT job_id FROM video_jobs FOR UPDATE`); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
	defer cancel()
	if _, err := store.Accept(ctx, "order-42", "job_1"); err != nil {
		t.Error(err)
	}
}

func TestMark(t *testing.T) {
	t.Parallel()
	store, pool := newStore(t)
	openSubmission(t, store, "order-42", `{"p": 1}`)
	runSQL(t, pool, `UPDATE video_submissions SET created_at = now() - interval '25 hours'`)
	if sub := markSubmission(t, store, "order-42", noCredits); sub.State != submit.Rejected || sub.HTTPStatus != 402 || !sub.Unanswered || sub.LastError != "no credits" {
		t.Errorf("got %+v, want rejected", sub)
	}
	if sub := markSubmission(t, store, "order-42", submit.Outcome{State: submit.Sending}); sub.State != submit.Sending || sub.HTTPStatus != 0 || sub.Unanswered ||
		sub.LastError != "" || sub.Age < 25*time.Hour || sub.Age > 26*time.Hour {
		t.Errorf("got %+v, want sending, 25 hours old", sub)
	}
	if err := store.Keep(t.Context(), "order-42", "job_1"); err != nil {
		t.Fatal(err)
	}
	if sub := markSubmission(t, store, "order-42", noCredits); sub.State != submit.Sending || sub.JobID != "job_1" || sub.HTTPStatus != 0 {
		t.Errorf("got %+v, want the known job kept", sub)
	}
	acceptSubmission(t, store, "order-42", "job_1")
	if sub := markSubmission(t, store, "order-42", noCredits); sub.State != submit.Accepted || sub.JobID != "job_1" || sub.LastError != "" {
		t.Errorf("got %+v, want the acceptance kept", sub)
	}
	if _, err := store.Mark(t.Context(), "another", noCredits); err == nil {
		t.Error("marking a key that is not there succeeded")
	}
}
