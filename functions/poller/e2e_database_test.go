package main_test

import (
	"context"
	"fmt"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"sumepoller/internal/config"
	"sumepoller/internal/poller"
	"sumepoller/internal/sume/sumetest"
	"sumepoller/migrations"
)

func TestDatabase_RefusesConnections(t *testing.T) {
	t.Parallel()
	s := newStage(t)
	s.due(t, sumetest.Plan{}, "job_1")
	b := s.limited(t, 20*time.Second, config.DatabaseURL+"="+at(t, s.database, "127.0.0.1:1"))
	if line, sum := b.fails(t, poller.KindDatabase); sum.Stopped != poller.StoppedCanceled || sum.Claimed > 0 {
		t.Errorf("%s, summary %+v", line, sum)
	}
	if reads := s.api.Stats().Reads; reads > 0 {
		t.Errorf("%d reads", reads)
	}
}

func TestDatabase_TooManyConnections(t *testing.T) {
	t.Parallel()
	s := newStage(t)
	s.due(t, sumetest.Plan{}, ids("job", 20)...)
	role := s.role(t, "CONNECTION LIMIT 1")
	full, err := pgx.Connect(t.Context(), role)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = full.Close(context.WithoutCancel(t.Context())) }()
	b := s.sandbox(t, config.DatabaseURL+"="+role, config.DatabaseMaxConns+"=1")
	if line, sum := b.fails(t, poller.KindDatabase); !strings.Contains(line, "53300") || sum.Claimed > 0 {
		t.Errorf("%s, summary %+v", line, sum)
	}
	// A connection gets free while the next tick tries.
	answer := b.begin(t, "")
	if err := full.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	if got := answered(t, answer); got.Finished["completed"] != 20 {
		t.Errorf("summary %+v", got)
	}
}

// role creates a role that may use the poller's tables, and returns its URL.
func (s *stage) role(t *testing.T, options string) string {
	t.Helper()
	name := fmt.Sprintf("e2e_%d", time.Now().UnixNano())
	s.exec(t, fmt.Sprintf(`CREATE ROLE %s LOGIN PASSWORD '%s' %s`, name, plantedPassword, options))
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(t.Context()), patience)
		defer cancel()
		_, _ = s.db.Exec(ctx, `SELECT pg_terminate_backend(pid, 10000) FROM pg_stat_activity WHERE usename = $1`, name)
		for _, sql := range []string{`DROP OWNED BY ` + name, `DROP ROLE ` + name} {
			if _, err := s.db.Exec(ctx, sql); err != nil {
				t.Error(err)
			}
		}
	})
	for _, grant := range migrations.PollerRights.Statements(name) {
		s.exec(t, grant)
	}
	u, err := url.Parse(s.database)
	if err != nil {
		t.Fatal(err)
	}
	u.User = url.UserPassword(name, plantedPassword)
	return u.String()
}

// The server closes the idle connections while the run sleeps. The next
// statement, within a second, must not fail.
func TestDatabase_ClosesIdleConnections(t *testing.T) {
	t.Parallel()
	s := newStage(t)
	s.due(t, sumetest.Plan{Reads: 3, Hint: 1}, ids("job", 5)...)
	b := s.sandbox(t, config.DatabaseURL+"="+named(t, s.database, "sandbox"))
	answer := b.begin(t, "")
	for polls := 1; polls <= 3; polls++ {
		until(t, "five reads to be settled", func() bool {
			return s.number(t, `SELECT count(*) FROM video_jobs WHERE polls >= $1`, polls) == 5
		})
		s.terminate(t)
	}
	if got := answered(t, answer); got.Finished["completed"] != 5 || got.Polled != 20 || got.LostLeases > 0 {
		t.Errorf("summary %+v", got)
	}
	// Between two invocations no connection is open.
	s.due(t, sumetest.Plan{}, "job_next")
	s.terminate(t)
	if got := b.tick(t); got.Finished["completed"] != 1 {
		t.Errorf("summary %+v", got)
	}
}

// terminate closes the sandbox's connections at the server.
func (s *stage) terminate(t *testing.T) {
	t.Helper()
	s.exec(t, `SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = 'sandbox' AND datname = current_database()`)
}

func TestDatabase_RestartDuringRun(t *testing.T) {
	t.Parallel()
	s := newStage(t)
	s.slow(50*time.Millisecond, 150*time.Millisecond)
	s.due(t, sumetest.Plan{}, ids("job", 1500)...)
	p := newProxy(t, host(t, s.database))
	b := s.sandbox(t, config.DatabaseURL+"="+named(t, at(t, s.database, p.Listen), "sandbox"))
	answer := b.begin(t, "")
	s.finished(t, 200)
	s.terminate(t) // as a shutdown does;
	p.Stop()       // then nobody listens
	<-time.After(time.Second)
	p.up(t) // until the server is back
	if got := answered(t, answer); got.Finished["completed"] != 1500 || got.LostLeases > 0 || got.Stopped != poller.StoppedDrained {
		t.Errorf("summary %+v", got)
	}
	s.ended(t, map[string]int{"completed": 1500})
	s.neverTogether(t)
}

func TestDatabase_GoneDuringRun(t *testing.T) {
	t.Parallel()
	s := newStage(t)
	s.slow(50*time.Millisecond, 150*time.Millisecond)
	s.due(t, sumetest.Plan{}, ids("job", 2000)...)
	p := newProxy(t, host(t, s.database))
	b := s.sandbox(t, config.DatabaseURL+"="+at(t, s.database, p.Listen))
	answer := b.begin(t, "")
	s.finished(t, 300)
	p.Stop()
	got, err := answer()
	if err != nil {
		t.Fatal(err)
	}
	_, sum := failure(t, got, poller.KindDatabase)
	done := s.number(t, completed)
	// The server's answers can be lost with the connection: at most those to two
	// batches.
	if n := sum.Finished["completed"]; n < 100 || n > done || n < done-2*192 {
		t.Errorf("%d finished in the summary, %d in the table", n, done)
	}
	p.up(t)
	s.pass(t, time.Hour)
	if sum := b.tick(t); sum.Finished["completed"] != 2000-done {
		t.Errorf("after the database is back: %+v, want %d finished", sum, 2000-done)
	}
	s.zero(t, charged)
}

// The answer to a COMMIT is lost. The statement is sent again, which must change
// nothing; each job is announced once.
func TestDatabase_LostCommitAnswers(t *testing.T) {
	t.Parallel()
	for name, statement := range map[string]string{"settles": "pg_notify", "claims": "SKIP LOCKED", "looks": "WITH free"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newStage(t)
			heard := s.announcements(t)
			s.slow(10*time.Millisecond, 30*time.Millisecond)
			s.due(t, sumetest.Plan{}, ids("job", 300)...)
			w := newWire(t, host(t, s.database))
			w.drop(statement, 3)
			got := s.sandbox(t, config.DatabaseURL+"="+at(t, s.database, w.address), "SUME_READS_PER_DAY=300000").tick(t)
			if got.Finished["completed"] != 300 || got.Claimed != 300 || got.LostLeases > 0 || got.ReadsToday != 300 {
				t.Errorf("summary %+v", got)
			}
			if n := w.dropped(); n != 3 {
				t.Errorf("%d answers dropped, want 3", n)
			}
			s.zero(t, `SELECT count(*) FROM video_jobs WHERE state <> 'completed' OR polls <> 1 OR lost_leases <> 0`)
			if reads := s.api.Stats().Reads; reads != 300 {
				t.Errorf("%d reads, want 300", reads)
			}
			once(t, heard(), 300)
		})
	}
}
