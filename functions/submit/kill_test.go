package main_test

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/jackc/pgx/v5"

	"sumepoller/internal/devstack"
	"sumepoller/internal/sume/sumetest"
)

// TestSubmit_Killed kills the built function with SIGKILL during a submission,
// and sends the order again to a new process.
func TestSubmit_Killed(t *testing.T) {
	t.Parallel()
	const (
		holdIntent = `INSERT INTO video_submissions (idempotency_key, request) VALUES ('order-42', '{}')`
		holdRecord = `INSERT INTO video_jobs (job_id) VALUES ('job_bought_1')`
		holdTrial  = `LOCK TABLE video_jobs IN EXCLUSIVE MODE`
	)
	hang := sumetest.Fault{Times: 1, Break: sumetest.BreakHang}
	hangSold := sumetest.Fault{Times: 1, Break: sumetest.BreakHang, Make: true}
	tests := map[string]struct {
		hold   string         // statement whose lock the submission waits for
		lost   bool           // the waiting statement is lost with the function
		fault  sumetest.Fault // in which the post waits
		left   []string       // state of the submission, then its row
		billed int
	}{
		"during the trial":           {holdTrial, true, sumetest.Fault{}, []string{}, 0},
		"before the trial's answer":  {holdTrial, false, sumetest.Fault{}, []string{}, 0},
		"before the intent":          {holdIntent, true, sumetest.Fault{}, []string{}, 0},
		"during the intent":          {holdIntent, false, sumetest.Fault{}, []string{"sending -"}, 0},
		"during a lost post":         {"", false, hang, []string{"sending -"}, 0},
		"during a post that sold":    {"", false, hangSold, []string{"sending -"}, 1},
		"before the commit":          {holdRecord, true, sumetest.Fault{}, []string{"sending -"}, 1},
		"before the commit's answer": {holdRecord, false, sumetest.Fault{}, []string{"accepted job_bought_1"}, 1},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			m := newFixture(t, sumetest.Options{})
			m.api.SetPostFault(tt.fault)
			m.killWhile(t, tt.hold, tt.lost)
			left := m.rows(t, `
SELECT s.state || ' ' || coalesce(j.job_id, '-')
FROM video_submissions s LEFT JOIN video_jobs j ON j.idempotency_key = s.idempotency_key`)
			if diff := cmp.Diff(tt.left, left); diff != "" {
				t.Errorf("it left (-want +got):\n%s", diff)
			}
			if billed := m.api.Stats().Billed; billed != tt.billed {
				t.Errorf("%d billed when killed, want %d", billed, tt.billed)
			}
			again := m.sandbox(t)
			for range 2 {
				if got, failure := invoke(t, again, payload("order-42")); failure != "" || got.JobID != "job_bought_1" || got.State != "pending" {
					t.Errorf("sent again: %+v, %s", got, failure)
				}
			}
			m.wantSettled(t, "order-42")
			if billed := m.api.Stats().Billed; billed != 1 {
				t.Errorf("%d jobs billed", billed)
			}
		})
	}
}

// TestSubmit_KilledAfterPost kills the built function while it stores a bought
// job's id or marks it as unrecorded, with a table that refuses the row.
func TestSubmit_KilledAfterPost(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		state string // of the row that the killed statement would have written
		lost  bool
		left  string
		posts int // in the end
	}{
		"before the id is stored":  {"sending", true, "sending -", 2},
		"before its answer":        {"sending", false, "sending job_bought_1", 1},
		"before the mark":          {"unrecorded", true, "sending job_bought_1", 1},
		"before the mark's answer": {"unrecorded", false, "unrecorded job_bought_1", 1},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			m := newFixture(t, sumetest.Options{})
			// The statement that writes the state waits: its trigger needs a lock that
			// the test holds from the post on.
			m.exec(t, `CREATE FUNCTION wait() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN PERFORM pg_advisory_xact_lock(42); RETURN NEW; END $$;
CREATE TRIGGER wait BEFORE UPDATE ON video_submissions FOR EACH ROW
WHEN (NEW.state = '`+tt.state+`' AND NEW.job_id IS NOT NULL) EXECUTE FUNCTION wait()`)
			refuse := sync.OnceFunc(func() { m.exec(t, refusedTables["NOT NULL column"].refuse) })
			m.onPost.Store(&refuse)
			m.killWhile(t, `SELECT pg_advisory_xact_lock(42)`, tt.lost)
			m.onPost.Store(nil)
			left := m.rows(t, `SELECT state || ' ' || coalesce(job_id, '-') FROM video_submissions`)
			if diff := cmp.Diff([]string{tt.left}, left); diff != "" {
				t.Errorf("it left (-want +got):\n%s", diff)
			}
			m.exec(t, `DROP FUNCTION wait() CASCADE; `+refusedTables["NOT NULL column"].fix)
			again := m.sandbox(t)
			for _, order := range [][]byte{resend("order-42"), payload("order-42")} {
				if got, failure := invoke(t, again, order); failure != "" || got.JobID != "job_bought_1" || got.State != "pending" {
					t.Errorf("sent again: %+v, %s", got, failure)
				}
			}
			m.wantSettled(t, "order-42")
			if stats := m.api.Stats(); stats.Billed != 1 || len(stats.Posts) != tt.posts {
				t.Errorf("%d jobs billed, %d posts; want 1 and %d", stats.Billed, len(stats.Posts), tt.posts)
			}
		})
	}
}

// killWhile starts an order and kills the function once it waits for the lock
// that the statement holds or, without one, once its post has arrived.
func (m *fixture) killWhile(t *testing.T, hold string, lost bool) {
	t.Helper()
	f := m.sandbox(t)
	held := m.hold(t, hold)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	invoked := make(chan struct{})
	go func() {
		defer close(invoked)
		_, _ = f.Invoke(ctx, payload("order-42")) // there is no answer
	}()
	if hold == "" {
		m.await(t, func() bool { return len(m.api.Stats().Posts) > 0 })
	} else {
		m.await(t, func() bool { return len(m.waiting(t)) > 0 })
	}
	f.Kill()
	cancel()
	<-invoked
	if lost {
		m.rows(t, `SELECT pg_terminate_backend(pid)::text FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'`)
	}
	if err := held.Rollback(context.WithoutCancel(t.Context())); err != nil {
		t.Fatal(err)
	}
	m.await(t, func() bool {
		return len(m.rows(t, `SELECT pid::text FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid() AND state <> 'idle'`)) == 0
	})
}

// hold opens a transaction that has carried out the statement.
func (m *fixture) hold(t *testing.T, statement string) pgx.Tx {
	t.Helper()
	held, err := m.db.Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := held.Exec(t.Context(), statement); err != nil {
		t.Fatal(err)
	}
	return held
}

func (m *fixture) waiting(t *testing.T) []string {
	t.Helper()
	return m.rows(t, `SELECT pid::text FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'`)
}

// await returns when the condition holds. It checks every 5 ms.
func (m *fixture) await(t *testing.T, holds func() bool) {
	t.Helper()
	ticker := time.NewTicker(5 * time.Millisecond)
	defer ticker.Stop()
	limit := time.After(30 * time.Second)
	for !holds() {
		select {
		case <-ticker.C:
		case <-limit:
			t.Fatal("the condition did not hold within 30 s")
		}
	}
}

// TestSubmit_TwoSandboxes sends one order to two processes at once.
func TestSubmit_TwoSandboxes(t *testing.T) {
	t.Parallel()
	m := newFixture(t, sumetest.Options{Latency: 200 * time.Millisecond})
	done := make(chan string, 2)
	for _, f := range []*devstack.Function{m.sandbox(t), m.sandbox(t)} {
		go func() {
			got, err := f.Invoke(t.Context(), payload("order-42"))
			done <- fmt.Sprint(string(got.Payload), got.Failure, err)
		}()
	}
	for range 2 {
		if got := <-done; !strings.HasPrefix(got, `{"job_id":"job_bought_1","state":"pending"`) {
			t.Errorf("got %s", got)
		}
	}
	m.wantSettled(t, "order-42")
	if billed := m.api.Stats().Billed; billed != 1 {
		t.Errorf("%d jobs billed", billed)
	}
}
