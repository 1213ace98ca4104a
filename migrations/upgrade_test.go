package migrations_test

import (
	"context"
	_ "embed"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"sumepoller/migrations"
)

// versionTwo is version 2 of the schema, as its make schema printed it.
//
//go:embed testdata/version2.sql
var versionTwo string

// columnsOf lists columns without their positions: an upgraded table has the newer
// ones last.
func columnsOf(lines []string) []string {
	var columns []string
	for _, line := range lines {
		if table, rest, ok := strings.Cut(line, " "); ok {
			_, rest, _ = strings.Cut(rest, " ")
			line = table + " " + rest
		}
		columns = append(columns, line)
	}
	slices.Sort(columns)
	return columns
}

func TestUpgrade_FromVersionTwo(t *testing.T) {
	t.Parallel()
	fresh := empty(t)
	mustUp(t, fresh, migrations.Result{From: 0, To: migrations.Latest})
	adopted := empty(t, threeColumns+`ALTER INDEX their_due_idx RENAME TO video_jobs_due_idx`)
	mustUp(t, adopted, migrations.Result{From: 0, To: migrations.Latest})
	for name, setup := range map[string]string{
		"fresh":   `SELECT`,
		"adopted": threeColumns + `ALTER INDEX their_due_idx RENAME TO video_jobs_due_idx`,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			pool, manual := empty(t, setup, versionTwo), empty(t, setup, versionTwo)
			run(t, pool, `INSERT INTO video_jobs (job_id, state, polls) VALUES ('old', 'completed', 7)`,
				`INSERT INTO video_submissions (idempotency_key, request, state) VALUES ('order', '{}', 'rejected')`)
			mustUp(t, pool, migrations.Result{From: 2, To: migrations.Latest})
			mustUp(t, pool, migrations.Result{From: migrations.Latest, To: migrations.Latest})
			want := append(columnsOf(shape(t, fresh)), "video_jobs api_key_ref text") // which version 2 had, and which stays as a user's column
			if diff := cmp.Diff(want, columnsOf(shape(t, pool)), cmpopts.SortSlices(strings.Compare)); diff != "" {
				t.Errorf("(-fresh +upgraded):\n%s", diff)
			}
			if got := queryValue(t, pool, `SELECT concat_ws(' ', j.state, j.polls, j.not_found_answers, s.http_status IS NULL, s.unanswered) FROM video_jobs j, video_submissions s WHERE j.job_id = 'old'`); got != "completed 7 0 t f" {
				t.Errorf("rows: got %q", got)
			}
			run(t, manual, plainSQL(t), plainSQL(t))
			if diff := cmp.Diff(shape(t, pool), shape(t, manual)); diff != "" {
				t.Errorf("(-automatic +by hand):\n%s", diff)
			}
			mustUp(t, manual, migrations.Result{From: migrations.Latest, To: migrations.Latest})
		})
	}
}

func TestUpgrade_KeepsOwnStorage(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ setup, again, want string }{
		"value of version 2":      {versionTwo, ``, "fillfactor=50"},
		"another value":           {versionTwo + `ALTER TABLE video_jobs SET (fillfactor = 35);`, ``, "fillfactor=35"},
		"20 set before adoption":  {bareTable + `ALTER TABLE video_jobs SET (fillfactor = 20);`, ``, "fillfactor=20"},
		"20 set after the update": {versionTwo, `ALTER TABLE video_jobs SET (fillfactor = 20)`, "fillfactor=20"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			pool := empty(t, c.setup)
			if _, err := up(t, pool); err != nil {
				t.Fatal(err)
			}
			if c.again != "" {
				run(t, pool, c.again, plainSQL(t))
			}
			if _, err := up(t, pool); err != nil {
				t.Fatal(err)
			}
			if got := queryValue(t, pool, `SELECT reloptions::text FROM pg_class WHERE oid = 'video_jobs'::regclass`); !strings.Contains(got, c.want) {
				t.Errorf("got %s, want %s", got, c.want)
			}
		})
	}
}

// A rule or constraint that was added after the adoption is a warning, no error:
// it must not keep the functions from being upgraded.
func TestUpgrade_WarnsOnly(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ setup, want string }{
		"rule":     {`CREATE RULE mine AS ON UPDATE TO video_jobs DO INSTEAD NOTHING`, "rule mine"},
		"child":    {`CREATE TABLE archive () INHERITS (video_jobs)`, "table archive"},
		"trigger":  {trigger("undo", "BEFORE UPDATE", "ROW", `RETURN OLD;`), "does not keep the claim (trigger undo)"},
		"check":    {`ALTER TABLE video_jobs ADD CONSTRAINT words CHECK (state IN ('pending', 'completed'))`, "constraint words"},
		"identity": {`CREATE PUBLICATION feed FOR TABLE video_jobs; ALTER TABLE video_jobs REPLICA IDENTITY NOTHING`, "publication feed"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			pool := empty(t, versionTwo+c.setup)
			for _, from := range []int64{2, migrations.Latest} {
				got, err := up(t, pool)
				if err != nil || got.From != from || got.To != migrations.Latest || !strings.Contains(strings.Join(got.Warnings, "\n"), c.want) {
					t.Errorf("got %+v, error %v; want a warning of %q", got, err, c.want)
				}
			}
		})
	}
}

func TestEncoding(t *testing.T) {
	t.Parallel()
	for encoding, want := range map[string]string{
		"UTF8":      "",
		"LATIN1":    "the database's encoding is LATIN1",
		"SQL_ASCII": "the database's encoding is SQL_ASCII",
	} {
		t.Run(encoding, func(t *testing.T) {
			t.Parallel()
			pool := empty(t)
			config := pool.Config()
			name := config.ConnConfig.Database + "_" + strings.ToLower(encoding)
			run(t, pool, fmt.Sprintf(`CREATE DATABASE %s ENCODING '%s' LC_COLLATE 'C' LC_CTYPE 'C' TEMPLATE template0`, name, encoding))
			t.Cleanup(func() {
				if _, err := pool.Exec(context.WithoutCancel(t.Context()), `DROP DATABASE `+name+` WITH (FORCE)`); err != nil {
					t.Error(err)
				}
			})
			config.ConnConfig.Database = name
			got, err := migrations.Up(t.Context(), config)
			if err != nil || got.To != migrations.Latest || !strings.Contains(strings.Join(got.Warnings, "\n"), want) || (want == "") != (len(got.Warnings) == 0) {
				t.Errorf("got %+v, error %v; want a warning of %q", got, err, want)
			}
		})
	}
}

// A migrator waits for an index that another role builds concurrently, and keeps it,
// although it may not see other roles' statistics.
func TestIndex_OtherRoleBuilds(t *testing.T) {
	t.Parallel()
	f := owned(t, threeColumns+`DROP INDEX their_due_idx`)
	run(t, f.pool, `GRANT "`+f.owner+`" TO "`+f.migrator+`"`)
	holder, err := f.pool.Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = holder.Rollback(t.Context()) }()
	if _, err := holder.Exec(t.Context(), `UPDATE video_jobs SET state = state WHERE job_id = 'job_1'`); err != nil {
		t.Fatal(err)
	}
	built := make(chan error, 1)
	go func() {
		_, err := f.pool.Exec(t.Context(), `CREATE INDEX CONCURRENTLY their_own ON video_jobs (next_poll_at) WHERE state = 'pending'`)
		built <- err
	}()
	until(t, f, `SELECT count(*)::text FROM pg_index WHERE indexrelid = to_regclass('their_own') AND NOT indisvalid`, "1")
	migrated := make(chan error, 1)
	go func() {
		_, err := upAs(t, f.pool, f.migrator)
		migrated <- err
	}()
	// The migrator has checked for builders, and waits.
	until(t, f, `SELECT least(count(*), 1)::text FROM pg_stat_activity WHERE usename = '`+f.migrator+`' AND query LIKE '%pg_stat_progress_create_index%'`, "1")
	if err := holder.Rollback(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := <-built; err != nil {
		t.Errorf("the other role's build: %v", err)
	}
	if err := <-migrated; err != nil {
		t.Errorf("migrate: %v", err)
	}
	if got := queryColumn(t, f.pool, `SELECT indexrelid::regclass || ' ' || indisvalid FROM pg_index WHERE indrelid = 'video_jobs'::regclass ORDER BY 1`); !slices.Equal(got, []string{"their_own true", "video_jobs_pkey true"}) {
		t.Errorf("indexes: got %q", got)
	}
}

// until repeats the query until its one value is want.
func until(t *testing.T, f fixture, query, want string) {
	t.Helper()
	deadline := time.Now().Add(time.Minute)
	for queryValue(t, f.pool, query) != want {
		if time.Now().After(deadline) {
			t.Fatalf("%s: never %s", query, want)
		}
		time.Sleep(10 * time.Millisecond)
	}
}

// VACUUM FULL and a restore fill pages to the fillfactor only, which must not inflate
// the table.
func TestStorage_VacuumFull(t *testing.T) {
	t.Parallel()
	pool := empty(t)
	mustUp(t, pool, migrations.Result{From: 0, To: migrations.Latest})
	run(t, pool, `INSERT INTO video_jobs (job_id) SELECT 'job_' || n FROM generate_series(1, 12000) n`)
	// Claimed and settled by the hundred, as runs do.
	for first := 1; first <= 12000; first += 100 {
		batch := fmt.Sprintf(`substr(job_id, 5)::integer BETWEEN %d AND %d`, first, first+99)
		run(t, pool, `UPDATE video_jobs SET lease_id = gen_random_uuid(), leased_until = now() WHERE `+batch,
			`UPDATE video_jobs SET leased_until = '-infinity', state = 'completed', finished_at = now(), polls = 1, last_polled_at = now(), sume_status = 'completed',
			 final_status = jsonb_build_object('url', (SELECT string_agg(md5(job_id || n), '') FROM generate_series(1, 31) n)) WHERE `+batch)
	}
	size := func() (bytes int64) {
		if err := pool.QueryRow(t.Context(), `SELECT pg_table_size('video_jobs')`).Scan(&bytes); err != nil {
			t.Fatal(err)
		}
		return bytes
	}
	before := size()
	run(t, pool, `VACUUM FULL video_jobs`)
	after := size()
	t.Logf("before %d kB, after %d kB", before/1024, after/1024)
	if float64(after) > 1.5*float64(before) {
		t.Errorf("VACUUM FULL: %d bytes became %d, want at most 1.5 times as many", before, after)
	}
}
