package jobs_test

import (
	"context"
	"fmt"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"sumepoller/internal/pgtest"
	"sumepoller/internal/poller"
	"sumepoller/internal/postgres"
	"sumepoller/internal/postgres/jobs"
)

// killAll ends every other session of the database, as a restart would.
func killAll(db *pgtest.DB) {
	db.Helper()
	db.Number(`SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity
	          WHERE datname = current_database() AND pid <> pg_backend_pid()`)
}

// The pool does not ping a connection that was in use shortly before: the statement
// itself has to find out that the connection is gone.
func TestRetry_CutBetweenStatements(t *testing.T) {
	t.Parallel()
	db := pgtest.New(t)
	db.InsertDue(30)
	s := jobs.New(pgtest.Pool(t, db.URL))
	r := counted(20, 100)
	day := claim(t, s, r).Day
	steps := map[string]func(){
		"claim":   func() { claim(t, s, counted(3, 100)) },
		"settle":  func() { settle(t, s, finish("job_30", r.Lease)) },
		"release": func() { release(t, s, day.Date, poller.Release{JobID: "job_29", Lease: r.Lease}) },
		"next due": func() {
			if _, _, err := s.NextDue(t.Context(), nil); err != nil {
				t.Error(err)
			}
		},
		"today": func() {
			if _, err := s.Today(t.Context()); err != nil {
				t.Error(err)
			}
		},
		"backlog": func() {
			if _, err := s.Backlog(t.Context()); err != nil {
				t.Error(err)
			}
		},
	}
	for range steps {
		for name, step := range steps {
			killAll(db)
			step()
			if t.Failed() {
				t.Fatalf("%s failed after its connection was cut", name)
			}
		}
	}
}

func TestRetry_CutDuringStatement(t *testing.T) {
	t.Parallel()
	db := pgtest.New(t)
	db.InsertDue(2)
	s := jobs.New(pgtest.Pool(t, db.URL))
	r := uncounted(2)
	claim(t, s, r)
	unlock := db.Lock("job_1")
	got := make(chan []poller.Outcome)
	go func() { got <- settle(t, s, finish("job_1", r.Lease), finish("job_2", r.Lease)) }()
	db.AwaitLockWaits(1)
	db.Number(`SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity
	           WHERE datname = current_database() AND wait_event_type = 'Lock'`)
	unlock()
	if o := <-got; o[0] == poller.LeaseLost || o[1] != poller.Written {
		t.Errorf("outcomes %v, want the free row done and the other not lost", o)
	}
}

// role makes a role that logs in and may do what grants say, and returns the
// database's URL for it.
func role(db *pgtest.DB, options string, grants ...string) string {
	db.Helper()
	lease := newLease()
	name := fmt.Sprintf("store_test_%x", lease[:6])
	db.Exec(`CREATE ROLE ` + name + ` LOGIN PASSWORD '` + name + `' ` + options)
	db.Cleanup(func() {
		ctx := context.WithoutCancel(db.Context())
		for _, sql := range []string{`DROP OWNED BY ` + name, `DROP ROLE ` + name} {
			if _, err := db.Pool.Exec(ctx, sql); err != nil {
				db.Errorf("%s: %v", sql, err)
			}
		}
	})
	for _, grant := range grants {
		db.Exec(`GRANT ` + grant + ` TO ` + name)
	}
	u, err := url.Parse(db.URL)
	if err != nil {
		db.Fatal(err)
	}
	u.User = url.UserPassword(name, name)
	return u.String()
}

func TestRetry_TooManyConnections(t *testing.T) {
	t.Parallel()
	db := pgtest.New(t)
	db.InsertDue(1)
	busy := role(db, "CONNECTION LIMIT 1", "SELECT, UPDATE ON video_jobs", "SELECT, INSERT, UPDATE ON read_budget")
	only := pgtest.Pool(t, busy)
	if err := only.Ping(t.Context()); err != nil {
		t.Fatal(err)
	}
	pool := pgtest.Pool(t, busy)
	if err := pool.Ping(t.Context()); postgres.SQLState(err) != "53300" {
		t.Fatalf("ping: %v, want too many connections", err)
	}
	got := make(chan int)
	go func() { got <- len(claim(t, jobs.New(pool), counted(1, 10)).Jobs) }()
	only.Close()
	if n := <-got; n != 1 {
		t.Errorf("claimed %d rows, want 1", n)
	}
}

func TestRetry_ServerAway(t *testing.T) {
	t.Parallel()
	pool, err := pgxpool.New(t.Context(), "postgres://poller:hunter2@127.0.0.1:1/app")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(pool.Close)
	s := jobs.New(pool)
	claim := func(within time.Duration) time.Duration {
		ctx, cancel := context.WithTimeout(t.Context(), within)
		defer cancel()
		start := time.Now()
		_, err := s.Claim(ctx, uncounted(1))
		if err == nil || !strings.HasPrefix(err.Error(), "claim due jobs: ") || strings.Contains(err.Error(), "hunter2") {
			t.Errorf("error %v", err)
		}
		return time.Since(start)
	}
	unhurried, hurried := claim(time.Minute), claim(200*time.Millisecond)
	if unhurried < 2*time.Second || unhurried >= time.Minute || hurried >= unhurried {
		t.Errorf("gave up after %v, and after %v of 200 ms; want over 2 s of trying again, and less where the context ends", unhurried, hurried)
	}
}

func TestErrors_PermissionDenied(t *testing.T) {
	t.Parallel()
	db := pgtest.New(t)
	var m meter
	cfg, err := pgxpool.ParseConfig(role(db, "", "SELECT ON video_jobs, read_budget, video_submissions"))
	if err != nil {
		t.Fatal(err)
	}
	cfg.ConnConfig.Tracer = &m
	pool, err := pgxpool.NewWithConfig(t.Context(), cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(pool.Close)
	s := jobs.New(pool)
	_, err = s.Settle(t.Context(), []poller.Settlement{finish("job_1", newLease())})
	if postgres.SQLState(err) != "42501" || !strings.HasPrefix(err.Error(), "settle job_1: ") {
		t.Errorf("settle: %v, want permission denied", err)
	}
	if _, err := s.Claim(t.Context(), uncounted(1)); postgres.SQLState(err) != "42501" {
		t.Errorf("claim: %v, want permission denied", err)
	}
	if n := m.statements.Load(); n != 4 {
		t.Errorf("%d statements, want 4: each once, and once without a row to see that no row is refused", n)
	}
	if _, err := s.Backlog(t.Context()); err != nil {
		t.Errorf("backlog as a role that may only SELECT: %v", err)
	}
}
