package migrations_test

import (
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"sumepoller/migrations"
)

func TestUp_NewTable(t *testing.T) {
	t.Parallel()
	pool := empty(t)
	mustUp(t, pool, migrations.Result{From: 0, To: migrations.Latest})

	var got []string
	for _, line := range shape(t, pool) {
		if rest, ok := strings.CutPrefix(line, "video_jobs "); ok {
			got = append(got, rest)
		}
	}
	want := []string{
		"1 job_id text NOT NULL",
		"10 failing_since timestamp with time zone",
		"11 last_error text",
		"12 last_polled_at timestamp with time zone",
		"13 finished_at timestamp with time zone",
		"14 created_at timestamp with time zone DEFAULT now()",
		"15 sume_status text",
		"16 final_status jsonb",
		"17 idempotency_key text",
		"2 state text NOT NULL DEFAULT 'pending'::text",
		"3 next_poll_at timestamp with time zone NOT NULL DEFAULT (now() + '00:00:15'::interval)",
		"4 leased_until timestamp with time zone NOT NULL DEFAULT '-infinity'::timestamp with time zone",
		"5 lease_id uuid NOT NULL DEFAULT '00000000-0000-0000-0000-000000000000'::uuid",
		"6 lost_leases integer NOT NULL DEFAULT 0",
		"7 polls integer NOT NULL DEFAULT 0",
		"8 consecutive_errors integer NOT NULL DEFAULT 0",
		"9 not_found_answers integer NOT NULL DEFAULT 0",
		"{fillfactor=50,autovacuum_vacuum_threshold=500,autovacuum_vacuum_scale_factor=0.01,autovacuum_analyze_threshold=500,autovacuum_analyze_scale_factor=0.05}",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("video_jobs (-want +got):\n%s", diff)
	}
	indexes := queryColumn(t, pool, `SELECT indexname::text FROM pg_indexes WHERE tablename = 'video_jobs' ORDER BY 1`)
	if diff := cmp.Diff([]string{"video_jobs_due_idx", "video_jobs_pkey"}, indexes); diff != "" {
		t.Errorf("indexes (-want +got):\n%s", diff)
	}
}

func TestUp_Again(t *testing.T) {
	t.Parallel()
	pool := empty(t)
	mustUp(t, pool, migrations.Result{From: 0, To: migrations.Latest})
	before := shape(t, pool)
	mustUp(t, pool, migrations.Result{From: migrations.Latest, To: migrations.Latest})
	if diff := cmp.Diff(before, shape(t, pool)); diff != "" {
		t.Errorf("(-before +after):\n%s", diff)
	}
}

func TestUp_Concurrent(t *testing.T) {
	t.Parallel()
	pool := empty(t)
	var all sync.WaitGroup
	for range 4 {
		all.Go(func() {
			got, err := up(t, pool)
			if err != nil || got.To != migrations.Latest {
				t.Errorf("got %+v, error %v", got, err)
			}
		})
	}
	all.Wait()
	steps := queryColumn(t, pool, `SELECT version_id::text FROM video_jobs_schema ORDER BY id`)
	want := queryColumn(t, pool, `SELECT n::text FROM generate_series(0, $1::bigint) n`, migrations.Latest)
	if diff := cmp.Diff(want, steps); diff != "" {
		t.Errorf("each step once (-want +got):\n%s", diff)
	}
}

func TestUp_OtherGooseTable(t *testing.T) {
	t.Parallel()
	pool := empty(t, `
CREATE TABLE goose_db_version (id serial PRIMARY KEY, version_id bigint NOT NULL, is_applied boolean NOT NULL, tstamp timestamp DEFAULT now());
INSERT INTO goose_db_version (version_id, is_applied) SELECT n, true FROM generate_series(0, 40) n`)
	mustUp(t, pool, migrations.Result{From: 0, To: migrations.Latest})
	if got := queryValue(t, pool, `SELECT count(*) || ' to ' || max(version_id) FROM goose_db_version`); got != "41 to 40" {
		t.Errorf("goose_db_version: got %s, want 41 to 40", got)
	}
}

func TestUp_NewerSchema(t *testing.T) {
	t.Parallel()
	pool := empty(t)
	mustUp(t, pool, migrations.Result{From: 0, To: migrations.Latest})
	// A later release may do more than this one would adopt.
	run(t, pool, `INSERT INTO video_jobs_schema (version_id, is_applied) VALUES (97, true)`,
		`ALTER TABLE video_jobs ALTER COLUMN polls TYPE bigint`,
		`DROP INDEX video_jobs_due_idx`)
	before := shape(t, pool)
	mustUp(t, pool, migrations.Result{From: 97, To: 97})
	if diff := cmp.Diff(before, shape(t, pool)); diff != "" {
		t.Errorf("(-before +after):\n%s", diff)
	}
}

func TestUp_SearchPath(t *testing.T) {
	t.Parallel()
	pool := empty(t)
	run(t, pool, `CREATE SCHEMA jobs`, `ALTER DATABASE `+pool.Config().ConnConfig.Database+` SET search_path = jobs`)
	mustUp(t, pool, migrations.Result{From: 0, To: migrations.Latest})
	if got := queryValue(t, pool, `SELECT count(*)::text FROM pg_tables WHERE schemaname = 'jobs'`); got != "4" {
		t.Errorf("tables in the schema: got %s, want 4", got)
	}
}
