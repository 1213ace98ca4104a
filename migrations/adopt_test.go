package migrations_test

import (
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"sumepoller/migrations"
)

func TestAdopt_HeldLockLoop(t *testing.T) {
	t.Parallel()
	pool := empty(t, threeColumns)
	// Workers of the older kind: a row is locked while its job is read.
	const work = `
WITH held AS MATERIALIZED (
    SELECT job_id FROM video_jobs WHERE state = 'pending' ORDER BY next_poll_at FOR UPDATE SKIP LOCKED LIMIT 1
), worked AS MATERIALIZED (
    SELECT job_id, pg_sleep(0.01) FROM held
)
UPDATE video_jobs j SET state = 'completed' FROM worked w WHERE j.job_id = w.job_id`
	var loops sync.WaitGroup
	started := make(chan struct{}, 320)
	for range 2 {
		loops.Go(func() {
			for {
				tag, err := pool.Exec(t.Context(), work)
				if err != nil {
					t.Errorf("held-lock worker: %v", err)
					return
				}
				if tag.RowsAffected() == 0 {
					return
				}
				started <- struct{}{}
			}
		})
	}
	<-started
	var migrators sync.WaitGroup
	for range 2 {
		migrators.Go(func() {
			if got, err := up(t, pool); err != nil || got.To != migrations.Latest {
				t.Errorf("migrate: got %+v, error %v", got, err)
			}
		})
	}
	migrators.Wait()
	mustUp(t, pool, migrations.Result{From: migrations.Latest, To: migrations.Latest})
	loops.Wait()

	got := queryValue(t, pool, `SELECT count(*) || ' ' || count(*) FILTER (WHERE state = 'completed') || ' ' || count(created_at) FROM video_jobs`)
	if want := "320 320 0"; got != want {
		t.Errorf("rows, completed, with a time of creation: got %s, want %s", got, want)
	}
	indexes := queryColumn(t, pool, `SELECT indexname::text FROM pg_indexes WHERE tablename = 'video_jobs' ORDER BY 1`)
	if diff := cmp.Diff([]string{"their_due_idx", "video_jobs_pkey"}, indexes); diff != "" {
		t.Errorf("indexes (-want +got):\n%s", diff)
	}
}

func TestAdopt_OlderPrograms(t *testing.T) {
	t.Parallel()
	pool := empty(t, threeColumns)
	mustUp(t, pool, migrations.Result{From: 0, To: migrations.Latest})

	// Values by position, ids alone, and an upsert, as they were.
	run(t, pool,
		`INSERT INTO video_jobs VALUES ('by_position', 'pending', now())`,
		`INSERT INTO video_jobs (job_id) VALUES ('by_name')`,
		`INSERT INTO video_jobs VALUES ('by_name', 'failed', now()) ON CONFLICT (job_id) DO UPDATE SET state = excluded.state`)
	rows, err := pool.Query(t.Context(), `SELECT * FROM video_jobs WHERE job_id LIKE 'by\_%' ORDER BY job_id`)
	if err != nil {
		t.Fatal(err)
	}
	defer rows.Close()
	var got []string
	for rows.Next() {
		values, err := rows.Values()
		if err != nil {
			t.Fatal(err)
		}
		got = append(got, values[0].(string)+" "+values[1].(string))
	}
	if diff := cmp.Diff([]string{"by_name failed", "by_position pending"}, got); diff != "" {
		t.Errorf("SELECT * by position (-want +got):\n%s", diff)
	}
	if got := queryValue(t, pool, `SELECT count(*)::text FROM video_jobs WHERE created_at IS NOT NULL`); got != "2" {
		t.Errorf("new rows with a time of creation: got %s, want 2", got)
	}
}

func TestAdopt_KeepsUsersColumns(t *testing.T) {
	t.Parallel()
	pool := empty(t, `
CREATE TABLE customers (id integer PRIMARY KEY);
CREATE TABLE video_jobs (
    id           bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    job_id       varchar(40) NOT NULL UNIQUE,
    customer     integer REFERENCES customers,
    state        varchar CHECK (state <> ''),
    next_poll_at timestamptz,
    created_at   timestamptz NOT NULL
) WITH (fillfactor = 80);
CREATE INDEX ours_to_keep ON video_jobs (customer);
INSERT INTO video_jobs (job_id, state, next_poll_at, created_at) VALUES ('job_1', 'pending', now(), '2020-01-01')`)
	mustUp(t, pool, migrations.Result{From: 0, To: migrations.Latest})

	got := queryValue(t, pool, `SELECT concat_ws(' ', id, job_id, state, created_at::date, polls) FROM video_jobs`)
	if want := "1 job_1 pending 2020-01-01 0"; got != want {
		t.Errorf("row: got %q, want %q", got, want)
	}
	run(t, pool, `INSERT INTO video_jobs (job_id) VALUES ('job_2')`, `INSERT INTO video_jobs (job_id, next_poll_at) VALUES ('job_3', NULL)`)
	got = queryValue(t, pool, `SELECT concat_ws(' ', state, next_poll_at > now(), created_at IS NOT NULL) FROM video_jobs WHERE job_id = 'job_2'`)
	if want := "pending t t"; got != want {
		t.Errorf("a row by id alone: got %q, want %q", got, want)
	}
	if got := queryValue(t, pool, `SELECT reloptions::text FROM pg_class WHERE oid = 'video_jobs'::regclass`); !strings.Contains(got, "fillfactor=80") {
		t.Errorf("storage: got %s, want the user's fillfactor", got)
	}
}

func TestIndex_MissingOrInvalid(t *testing.T) {
	t.Parallel()
	for name, setup := range map[string]string{
		"missing":              ``,
		"of finished rows":     `CREATE INDEX other_idx ON video_jobs (next_poll_at) WHERE state = 'failed'`,
		"of two columns":       `CREATE INDEX other_idx ON video_jobs (next_poll_at, job_id) WHERE state = 'pending'`,
		"left by a failed one": "broken",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			pool := empty(t, threeColumns+`DROP INDEX their_due_idx`)
			if setup == "broken" {
				breakIndex(t, pool.Config().ConnConfig.Copy())
			} else {
				run(t, pool, setup)
			}
			mustUp(t, pool, migrations.Result{From: 0, To: migrations.Latest})
			due := queryColumn(t, pool, `SELECT indexrelid::regclass || ' ' || indisvalid FROM pg_index
 WHERE indrelid = 'video_jobs'::regclass AND indexrelid::regclass::text NOT IN ('other_idx', 'video_jobs_pkey')`)
			if diff := cmp.Diff([]string{"video_jobs_due_idx true"}, due); diff != "" {
				t.Errorf("due indexes (-want +got):\n%s", diff)
			}
		})
	}
}

func TestIndex_NameTaken(t *testing.T) {
	t.Parallel()
	pool := empty(t, threeColumns+`DROP INDEX their_due_idx; CREATE INDEX video_jobs_due_idx ON video_jobs (state)`)
	if _, err := up(t, pool); err == nil || !strings.HasSuffix(err.Error(), "ALTER INDEX video_jobs_due_idx RENAME TO another_name") {
		t.Errorf("got error %v, want one that names the cure", err)
	}
	run(t, pool, `ALTER INDEX video_jobs_due_idx RENAME TO theirs`)
	mustUp(t, pool, migrations.Result{From: 1, To: migrations.Latest})
}

func TestAdopt_Refused(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ setup, want string }{
		"a column of the product in another type": {
			threeColumns + `ALTER TABLE video_jobs ADD COLUMN final_status text, ADD COLUMN polls bigint`,
			"polls is bigint, not integer NOT NULL with a default; final_status is text, not jsonb",
		},
		"a column of the product that may be NULL": {
			threeColumns + `ALTER TABLE video_jobs ADD COLUMN leased_until timestamptz DEFAULT now()`,
			"leased_until is timestamp with time zone, not timestamp with time zone NOT NULL with a default",
		},
		"a column of the product that may not be NULL": {
			threeColumns + `ALTER TABLE video_jobs ADD COLUMN last_error text NOT NULL DEFAULT ''`,
			"last_error is text NOT NULL, not text",
		},
		"an id that is not unique":    {`CREATE TABLE video_jobs (job_id text NOT NULL, state text, next_poll_at timestamptz)`, "job_id is not unique"},
		"an id of a composite key":    {`CREATE TABLE video_jobs (job_id text, state text, next_poll_at timestamptz, PRIMARY KEY (job_id, state))`, "job_id is not unique"},
		"an id that may be NULL":      {`CREATE TABLE video_jobs (job_id text UNIQUE, state text, next_poll_at timestamptz)`, "job_id may be NULL"},
		"an id of another type":       {`CREATE TABLE video_jobs (job_id uuid PRIMARY KEY, state text, next_poll_at timestamptz)`, "job_id is uuid, not text"},
		"a state from a list":         {`CREATE TYPE st AS ENUM ('pending'); CREATE TABLE video_jobs (job_id text PRIMARY KEY, state st, next_poll_at timestamptz)`, "state is st, not text"},
		"a state too short for words": {`CREATE TABLE video_jobs (job_id text PRIMARY KEY, state varchar(20), next_poll_at timestamptz)`, "state is character varying(20), not text"},
		"a time without a zone":       {`CREATE TABLE video_jobs (job_id text PRIMARY KEY, state text, next_poll_at timestamp)`, "next_poll_at is timestamp without time zone"},
		"a missing column":            {`CREATE TABLE video_jobs (job_id text PRIMARY KEY, state text)`, "next_poll_at is missing"},
		"a read_budget of another's":  {`CREATE TABLE read_budget (day date PRIMARY KEY, amount numeric)`, "for another purpose (read_budget.reads): rename it"},
		"submissions of another's":    {threeColumns + `CREATE TABLE video_submissions (idempotency_key text, request jsonb, job_id text, state text, last_error text, created_at timestamptz, updated_at timestamptz)`, "(video_submissions.request)"},
		"a view":                      {`CREATE VIEW video_jobs AS SELECT 1 AS job_id`, "not an ordinary table"},
		"a partitioned table":         {`CREATE TABLE video_jobs (job_id text PRIMARY KEY, state text, next_poll_at timestamptz) PARTITION BY HASH (job_id)`, "not an ordinary table"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			pool := empty(t, c.setup)
			before := shape(t, pool)
			got, err := up(t, pool)
			if err == nil || !strings.Contains(err.Error(), c.want) || strings.Contains(err.Error(), "\n") {
				t.Errorf("got %+v, error %v; want one line with %q", got, err, c.want)
			}
			if diff := cmp.Diff(before, shape(t, pool)); diff != "" {
				t.Errorf("(-before +after):\n%s", diff)
			}
		})
	}
}
