package submissions_test

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"net/url"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/jackc/pgx/v5/pgxpool"

	"sumepoller/internal/pgtest"
	"sumepoller/internal/postgres/submissions"
	"sumepoller/internal/submit"
)

// TestTry_SQLStates has a trigger raise what the server can raise: a few
// classes are the infrastructure's, everything else would come again.
func TestTry_SQLStates(t *testing.T) {
	t.Parallel()
	store, pool := newStore(t)
	runSQL(t, pool, `CREATE FUNCTION check_job() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN END';
CREATE TRIGGER check_job BEFORE INSERT ON video_jobs FOR EACH ROW EXECUTE FUNCTION check_job()`)
	for code, refused := range map[string]bool{
		"P0001": true, "AB001": true, "22P02": true, "23505": true, "23514": true, "42501": true, "42703": true, "54000": true, "55000": true, "0A000": true,
		"08006": false, "25006": false, "26000": false, "28000": false, "40001": false, "40P01": false, "53100": false, "53200": false,
		"55P03": false, "57014": false, "57P01": false, "58030": false, "XX001": false,
	} {
		runSQL(t, pool, fmt.Sprintf(`CREATE OR REPLACE FUNCTION check_job() RETURNS trigger LANGUAGE plpgsql AS
$$ BEGIN RAISE 'no' USING ERRCODE = '%s', COLUMN = 'c', CONSTRAINT = 'k', TABLE = 't'; END $$`, code))
		err := store.Try(t.Context(), "order-42")
		var got *submit.WriteError
		if err == nil || errors.As(err, &got) != refused {
			t.Errorf("%s: got %v, refused %v", code, err, !refused)
		}
		want := &submit.WriteError{SQLState: code, Table: "t", Column: "c", Constraint: "k", Function: "check_job", Message: "no"}
		if diff := cmp.Diff(want, got); refused && diff != "" {
			t.Errorf("%s (-want +got):\n%s", code, diff)
		}
	}
	if rows := submittedRows(t, pool); len(rows) != 0 {
		t.Errorf("the trial left %q", rows)
	}
}

// A job whose row is recorded and never read is as good as forgotten.
func TestTry_RowNeverRead(t *testing.T) {
	t.Parallel()
	for name, change := range map[string]string{
		"another state":   `new.state := 'queued'`,
		"never due":       `new.next_poll_at := 'infinity'`,
		"due in the past": `new.next_poll_at := now() - interval '1 hour'`,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			store, pool := newStore(t)
			runSQL(t, pool, `CREATE FUNCTION theirs() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN `+change+`; RETURN new; END $$;
CREATE TRIGGER theirs BEFORE INSERT ON video_jobs FOR EACH ROW EXECUTE FUNCTION theirs()`)
			err := store.Try(t.Context(), "order-42")
			if want := name != "due in the past"; errors.As(err, new(*submit.WriteError)) != want {
				t.Errorf("got %v, refused %v", err, want)
			}
		})
	}
}

// TestTry_Rights goes through the ways in which a role may be kept from
// recording a job.
func TestTry_Rights(t *testing.T) {
	t.Parallel()
	const rights = `GRANT SELECT, INSERT, UPDATE ON video_submissions TO %[1]s; GRANT SELECT, INSERT ON video_jobs TO %[1]s; `
	tests := map[string]struct{ grant, code string }{
		"all it needs":             {rights, ""},
		"no INSERT on jobs":        {`GRANT SELECT, INSERT, UPDATE ON video_submissions TO %[1]s; GRANT SELECT ON video_jobs TO %[1]s`, "42501"},
		"no UPDATE on submissions": {`GRANT SELECT, INSERT ON video_submissions TO %[1]s; GRANT SELECT, INSERT ON video_jobs TO %[1]s`, "42501"},
		"row-level security":       {rights + `ALTER TABLE video_jobs ENABLE ROW LEVEL SECURITY; CREATE POLICY see ON video_jobs FOR SELECT USING (true)`, "42501"},
		"rows that it cannot see":  {rights + `ALTER TABLE video_jobs ENABLE ROW LEVEL SECURITY; CREATE POLICY put ON video_jobs FOR INSERT WITH CHECK (true)`, "42501"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			databaseURL := pgtest.URL(t)
			admin := pgtest.Pool(t, databaseURL)
			role := "sumepoller_submit_" + strings.ToLower(rand.Text())
			runSQL(t, admin, `CREATE ROLE `+role)
			t.Cleanup(func() {
				if _, err := admin.Exec(context.WithoutCancel(t.Context()), `DROP OWNED BY `+role+`; DROP ROLE `+role); err != nil {
					t.Error(err)
				}
			})
			runSQL(t, admin, fmt.Sprintf(tt.grant, role))
			err := submissions.New(pgtest.Pool(t, pgtest.With(t, databaseURL, "options", "-crole="+role))).Try(t.Context(), "order-42")
			var got *submit.WriteError
			switch {
			case tt.code == "" && err != nil, tt.code != "" && !errors.As(err, &got):
				t.Errorf("got %v, want %q", err, tt.code)
			case tt.code != "" && got.SQLState != tt.code:
				t.Errorf("got SQLSTATE %s, want %s", got.SQLState, tt.code)
			}
		})
	}
}

// TestAccept_Refused looks at what a refused row leaves in the tables, and at
// the end of it, in every way of sending queries.
func TestAccept_Refused(t *testing.T) {
	t.Parallel()
	for _, mode := range []string{"cache_statement", "exec", "simple_protocol"} {
		t.Run(mode, func(t *testing.T) {
			t.Parallel()
			pool := pgtest.Pool(t, pgtest.With(t, pgtest.URL(t), "default_query_exec_mode", mode))
			store := submissions.New(pool)
			openSubmission(t, store, "order-42", `{"p": 1}`)
			runSQL(t, pool, `ALTER TABLE video_jobs ADD CONSTRAINT numbered CHECK (job_id ~ '^[0-9]') NOT VALID`)
			var refused *submit.WriteError
			if _, err := store.Accept(t.Context(), "order-42", "job_1"); !errors.As(err, &refused) || refused.Constraint != "numbered" {
				t.Fatalf("got %v, want an error that names the constraint", err)
			}
			for range 2 {
				sub, err := store.Unrecord(t.Context(), "order-42", "job_1", "numbered")
				if err != nil || sub.State != submit.Unrecorded || sub.JobID != "job_1" || sub.JobState != "" || sub.LastError != "numbered" {
					t.Errorf("got %+v, %v, want unrecorded", sub, err)
				}
			}
			runSQL(t, pool, `ALTER TABLE video_jobs DROP CONSTRAINT numbered`)
			acceptSubmission(t, store, "order-42", "job_1")
			if sub, err := store.Unrecord(t.Context(), "order-42", "job_1", "late"); err != nil || sub.State != submit.Accepted || sub.LastError != "" {
				t.Errorf("got %+v, %v, want the acceptance kept", sub, err)
			}
		})
	}
}

// TestUnrecord_EncodingLacksID keeps an id that the database's encoding cannot
// hold within the reason.
func TestUnrecord_EncodingLacksID(t *testing.T) {
	t.Parallel()
	pool := latin1Database(t)
	store := submissions.New(pool)
	runSQL(t, pool, `CREATE TABLE video_jobs (job_id text PRIMARY KEY, state text, next_poll_at timestamptz, created_at timestamptz, idempotency_key text);
CREATE TABLE video_submissions (idempotency_key text PRIMARY KEY, request json NOT NULL, job_id text, state text NOT NULL, http_status integer,
    unanswered boolean NOT NULL DEFAULT false, last_error text, created_at timestamptz NOT NULL DEFAULT now(), updated_at timestamptz)`)
	openSubmission(t, store, "order-42", `{"p": 1}`)
	if err := store.Keep(t.Context(), "order-42", "仕事-1"); !errors.As(err, new(*submit.WriteError)) {
		t.Errorf("got %v, want a write error", err)
	}
	sub, err := store.Unrecord(t.Context(), "order-42", "仕事-1", "no such character")
	if err != nil || sub.State != submit.Unrecorded || sub.JobID != "" || !strings.Contains(sub.LastError, `"\u4ed5\u4e8b-1"`) {
		t.Errorf("got %+v, %v, want the id in last_error", sub, err)
	}
}

// latin1Database opens a pool on an empty database in LATIN1.
func latin1Database(t *testing.T) *pgxpool.Pool {
	t.Helper()
	databaseURL := pgtest.Empty(t)
	admin := pgtest.Pool(t, databaseURL)
	name := "sumepoller_latin1_" + strings.ToLower(rand.Text())
	runSQL(t, admin, `CREATE DATABASE `+name+` TEMPLATE template0 ENCODING 'LATIN1' LOCALE 'C'`)
	t.Cleanup(func() {
		if _, err := admin.Exec(context.WithoutCancel(t.Context()), `DROP DATABASE `+name+` WITH (FORCE)`); err != nil {
			t.Error(err)
		}
	})
	u, err := url.Parse(databaseURL)
	if err != nil {
		t.Fatal(err)
	}
	u.Path = "/" + name
	return pgtest.Pool(t, pgtest.With(t, u.String(), "client_encoding", "UTF8"))
}
