package main_test

import (
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"sumepoller/internal/devstack"
	"sumepoller/internal/sume/sumetest"
)

// refusedTable is a video_jobs that refuses a bought job's row.
type refusedTable struct{ refuse, fix, names string }

// onInsert returns the SQL of a trigger with this body.
func onInsert(when, body string) string {
	return `CREATE FUNCTION check_job() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN ` + body + ` END $$;
CREATE TRIGGER check_job ` + when + ` INSERT ON video_jobs FOR EACH ROW EXECUTE FUNCTION check_job();`
}

const dropTrigger = `DROP FUNCTION check_job() CASCADE`

var refusedTables = map[string]refusedTable{
	"NOT NULL column": {
		`ALTER TABLE video_jobs ADD COLUMN customer_id bigint NOT NULL`, `ALTER TABLE video_jobs ALTER COLUMN customer_id DROP NOT NULL`,
		"SQLSTATE 23502, table video_jobs, column customer_id",
	},
	"short id": {`ALTER TABLE video_jobs ALTER COLUMN job_id TYPE varchar(8)`, `ALTER TABLE video_jobs ALTER COLUMN job_id TYPE text`, "SQLSTATE 22001"},
	"foreign key": {
		`CREATE TABLE orders (id text PRIMARY KEY); ALTER TABLE video_jobs ADD CONSTRAINT of_an_order FOREIGN KEY (job_id) REFERENCES orders (id)`,
		`ALTER TABLE video_jobs DROP CONSTRAINT of_an_order`, "SQLSTATE 23503, table video_jobs, constraint of_an_order",
	},
	"trigger": {onInsert("BEFORE", `RAISE 'no customer for %, see https://x.test/?sig=1', NEW.idempotency_key;`), dropTrigger, "SQLSTATE P0001, function check_job"},
	"deferred foreign key": {
		`CREATE TABLE orders (id text PRIMARY KEY);
		 ALTER TABLE video_jobs ADD CONSTRAINT of_an_order FOREIGN KEY (job_id) REFERENCES orders (id) DEFERRABLE INITIALLY DEFERRED`,
		`ALTER TABLE video_jobs DROP CONSTRAINT of_an_order`, "constraint of_an_order",
	},
	"CHECK": {
		`ALTER TABLE video_jobs ADD CONSTRAINT numbered CHECK (job_id ~ '^[0-9]+$')`, `ALTER TABLE video_jobs DROP CONSTRAINT numbered`,
		"SQLSTATE 23514, table video_jobs, constraint numbered",
	},
	"other SQLSTATE":         {onInsert("AFTER", `RAISE 'no' USING ERRCODE = 'AB001'; RETURN NULL;`), dropTrigger, "SQLSTATE AB001, function check_job"},
	"trigger drops the row":  {onInsert("BEFORE", `RETURN NULL;`), dropTrigger, "is not there"},
	"trigger moves the row":  {onInsert("AFTER", `DELETE FROM video_jobs WHERE job_id = NEW.job_id; RETURN NULL;`), dropTrigger, "is not there"},
	"trigger renames the id": {onInsert("BEFORE", `NEW.job_id := 'x' || NEW.job_id; RETURN NEW;`), dropTrigger + `; DELETE FROM video_jobs`, "is not there"},
	"rule": {
		`CREATE RULE no_jobs AS ON INSERT TO video_jobs DO INSTEAD NOTHING`, `DROP RULE no_jobs ON video_jobs`, "SQLSTATE 0A000",
	},
	"lost column": {`ALTER TABLE video_jobs DROP COLUMN created_at`, `ALTER TABLE video_jobs ADD COLUMN created_at timestamptz`, "SQLSTATE 42703"},
}

// wantError invokes the function. Within ten seconds, the error has to be one line
// with this beginning and these names.
func wantError(t *testing.T, f *devstack.Function, payload []byte, begins, names string) {
	t.Helper()
	started := time.Now()
	got, failure := invoke(t, f, payload)
	if took := time.Since(started); took > 10*time.Second {
		t.Errorf("answered after %v", took)
	}
	if !strings.HasPrefix(failure, begins) || !strings.Contains(failure, names) || strings.Contains(failure, "\n") || strings.Contains(failure, "://") {
		t.Errorf("got %+v, %q; want %q and %q", got, failure, begins, names)
	}
}

func resend(key string) []byte {
	return []byte(`{"resend": true, "video": ` + video + `, "idempotency_key": "` + key + `"}`)
}

// TestSubmit_TableRefuses guards against a bug that others reported: a job is paid
// for and its id is lost, since the user's table refuses its row.
func TestSubmit_TableRefuses(t *testing.T) {
	t.Parallel()
	for name, tt := range refusedTables {
		t.Run("before the post/"+name, func(t *testing.T) {
			t.Parallel()
			m := newFixture(t, sumetest.Options{})
			m.exec(t, tt.refuse)
			f := m.sandbox(t)
			wantError(t, f, payload("order-42"), "database: nothing was sent", tt.names)
			wantError(t, f, resend("order-42"), "database: nothing was sent", tt.names)
			if left := m.rows(t, `SELECT idempotency_key FROM video_submissions UNION ALL SELECT job_id FROM video_jobs`); len(left) != 0 || len(m.api.Stats().Posts) != 0 {
				t.Errorf("wrote %q, posts %v", left, m.api.Stats().Posts)
			}
			m.exec(t, tt.fix)
			m.wantBought(t, f)
		})
		t.Run("after the post/"+name, func(t *testing.T) {
			t.Parallel()
			m := newFixture(t, sumetest.Options{})
			refuse := func() { m.exec(t, tt.refuse) }
			m.onPost.Store(&refuse)
			f := m.sandbox(t)
			wantError(t, f, payload("order-42"), "unrecorded: job_bought_1 is bought and not recorded", tt.names)
			m.onPost.Store(nil)
			for _, again := range [][]byte{payload("order-42"), resend("order-42")} {
				wantError(t, f, again, "unrecorded: job_bought_1 is bought and not recorded", tt.names)
				left := m.rows(t, `SELECT concat_ws(' ', state, job_id, position($1 in last_error) > 0) FROM video_submissions`, tt.names)
				if diff := cmp.Diff([]string{"unrecorded job_bought_1 t"}, left); diff != "" {
					t.Errorf("submission (-want +got):\n%s", diff)
				}
			}
			for line := range strings.Lines(f.Log()) {
				if !strings.Contains(line, `"outcome"`) {
					continue
				}
				if !strings.Contains(line, "job_bought_1 is bought and not recorded") || !strings.Contains(line, tt.names) || strings.Contains(line, "order-42") {
					t.Errorf("summary %s", line)
				}
			}
			m.exec(t, tt.fix)
			m.wantBought(t, f)
		})
	}
}

// wantBought sends the order twice. It has to be posted once in all.
func (m *fixture) wantBought(t *testing.T, f *devstack.Function) {
	t.Helper()
	for range 2 {
		if got, failure := invoke(t, f, payload("order-42")); failure != "" || got.JobID != "job_bought_1" || got.State != "pending" {
			t.Errorf("sent again: %+v, %s", got, failure)
		}
	}
	m.wantSettled(t, "order-42")
	if posts := m.api.Stats().Posts; len(posts) != 1 {
		t.Errorf("%d posts: %+v", len(posts), posts)
	}
}

// TestSubmit_DatabaseRefusesForNow tests errors of the database that are not
// errors of the table: the same write succeeds later.
func TestSubmit_DatabaseRefusesForNow(t *testing.T) {
	t.Parallel()
	tests := map[string]struct{ refuse, fix, says string }{
		"read-only": {
			`DO $$ BEGIN EXECUTE format('ALTER DATABASE %I SET default_transaction_read_only = on', current_database()); END $$`,
			`SET default_transaction_read_only = off; DO $$ BEGIN EXECUTE format('ALTER DATABASE %I RESET default_transaction_read_only', current_database()); END $$`,
			"25006",
		},
		"disk full":         {onInsert("BEFORE", `RAISE 'no space' USING ERRCODE = '53100';`), dropTrigger, "53100"},
		"statement timeout": {onInsert("BEFORE", `SET LOCAL statement_timeout = '50ms'; RAISE 'late' USING ERRCODE = '57014';`), dropTrigger, "57014"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			m := newFixture(t, sumetest.Options{})
			m.exec(t, tt.refuse)
			f := m.sandbox(t)
			wantError(t, f, payload("order-42"), "database: ", tt.says)
			if posts := m.api.Stats().Posts; len(posts) != 0 {
				t.Errorf("%d posts", len(posts))
			}
			m.exec(t, tt.fix)
			m.wantBought(t, f)
		})
	}
}

// TestSubmit_OddIDs tests ids of the API that a table may not hold.
func TestSubmit_OddIDs(t *testing.T) {
	t.Parallel()
	tests := map[string]string{
		"longer than the column": "job_" + strings.Repeat("7", 300),
		"odd characters":         `über-1 '"\%s$1?🎬`,
	}
	for name, id := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			m := newFixture(t, sumetest.Options{})
			m.exec(t, `ALTER TABLE video_jobs ALTER COLUMN job_id TYPE varchar(64)`)
			quoted := strings.NewReplacer(`\`, `\\`, `"`, `\"`).Replace(id)
			m.api.SetPostFault(sumetest.Fault{Times: 1, Status: 202, Body: `{"job_id": "` + quoted + `"}`})
			f := m.sandbox(t)
			if len(id) > 64 {
				wantError(t, f, payload("order-42"), "unrecorded: "+id, "SQLSTATE 22001")
				wantError(t, f, resend("order-42"), "unrecorded: "+id, "SQLSTATE 22001")
				m.exec(t, `ALTER TABLE video_jobs ALTER COLUMN job_id TYPE text`)
			}
			if got, failure := invoke(t, f, payload("order-42")); failure != "" || got.JobID != id || got.State != "pending" {
				t.Errorf("got %+v, %s", got, failure)
			}
			if left := m.rows(t, `SELECT s.state || ' ' || j.job_id FROM video_submissions s JOIN video_jobs j USING (job_id)`); len(left) != 1 || left[0] != "accepted "+id {
				t.Errorf("submission %q", left)
			}
			if posts := m.api.Stats().Posts; len(posts) != 1 {
				t.Errorf("%d posts", len(posts))
			}
		})
	}
}

// TestSubmit_ConcurrentTableRefuses sends one order to two sandboxes while the
// table begins to refuse.
func TestSubmit_ConcurrentTableRefuses(t *testing.T) {
	t.Parallel()
	m := newFixture(t, sumetest.Options{})
	refuse := sync.OnceFunc(func() { m.exec(t, refusedTables["NOT NULL column"].refuse) })
	m.onPost.Store(&refuse)
	var wg sync.WaitGroup
	sandboxes := []*devstack.Function{m.sandbox(t), m.sandbox(t)}
	for _, f := range sandboxes {
		wg.Go(func() {
			if got, failure := invoke(t, f, payload("order-42")); failure == "" {
				t.Errorf("got %+v", got)
			}
		})
	}
	wg.Wait()
	m.onPost.Store(nil)
	sent := len(m.api.Stats().Posts)
	if left := m.rows(t, `SELECT state || ' ' || job_id FROM video_submissions`); len(left) != 1 || left[0] != "unrecorded job_bought_1" {
		t.Errorf("submission %q", left)
	}
	m.exec(t, refusedTables["NOT NULL column"].fix)
	for _, f := range sandboxes {
		wg.Go(func() {
			if got, failure := invoke(t, f, payload("order-42")); failure != "" || got.JobID != "job_bought_1" || got.State != "pending" {
				t.Errorf("sent again: %+v, %s", got, failure)
			}
		})
	}
	wg.Wait()
	m.wantSettled(t, "order-42")
	if stats := m.api.Stats(); len(stats.Posts) != sent || stats.Billed != 1 {
		t.Errorf("%d posts, then %d; %d billed", sent, len(stats.Posts), stats.Billed)
	}
}
