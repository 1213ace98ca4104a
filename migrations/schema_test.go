package migrations_test

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"sumepoller/internal/poller"
	"sumepoller/migrations"
)

// plainSQL returns the SQL that a person runs with psql.
func plainSQL(t *testing.T) string {
	t.Helper()
	sql, err := migrations.Schema()
	if err != nil {
		t.Fatal(err)
	}
	return sql
}

func TestSchema_EqualsUp(t *testing.T) {
	t.Parallel()
	for name, setup := range map[string]string{
		"on an empty database":   `SELECT`,
		"on an adopted table":    threeColumns,
		"without the index":      threeColumns + `DROP INDEX their_due_idx`,
		"on a varchar table":     `CREATE TABLE video_jobs (job_id varchar(80) NOT NULL UNIQUE, state varchar, next_poll_at timestamptz(3))`,
		"after an automatic one": ``,
		"with an invalid index":  threeColumns + `UPDATE pg_index SET indisvalid = false WHERE indexrelid = 'their_due_idx'::regclass`,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			automatic, manual := empty(t, setup), empty(t, setup)
			mustUp(t, automatic, migrations.Result{From: 0, To: migrations.Latest})
			if setup == "" {
				mustUp(t, manual, migrations.Result{From: 0, To: migrations.Latest})
			}
			run(t, manual, plainSQL(t), plainSQL(t))
			if diff := cmp.Diff(shape(t, automatic), shape(t, manual)); diff != "" {
				t.Errorf("(-automatic +manual):\n%s", diff)
			}
			mustUp(t, manual, migrations.Result{From: migrations.Latest, To: migrations.Latest})
		})
	}
}

func TestSchema_Refuses(t *testing.T) {
	t.Parallel()
	pool := empty(t, threeColumns+`ALTER TABLE video_jobs ADD COLUMN polls text`)
	before := shape(t, pool)
	conn, err := pool.Acquire(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := conn.Conn().PgConn().Exec(t.Context(), plainSQL(t)).ReadAll(); err == nil {
		t.Error("got no error")
	}
	// The failed transaction ends with the connection.
	if err := conn.Hijack().Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(before, shape(t, pool)); diff != "" {
		t.Errorf("(-before +after):\n%s", diff)
	}
}

// One sequence numbers all steps: two files of one number, or a gap, would give
// a database another version than its steps.
func TestSteps_Numbers(t *testing.T) {
	t.Parallel()
	files, err := filepath.Glob("sql/steps/*")
	if err != nil {
		t.Fatal(err)
	}
	for i, file := range files {
		if want := fmt.Sprintf("%04d_", i+1); !strings.HasPrefix(filepath.Base(file), want) || filepath.Ext(file) != ".sql" {
			t.Errorf("%s: want a .sql file whose name begins with %s", file, want)
		}
	}
	if int64(len(files)) != migrations.Latest {
		t.Errorf("%d files, version %d; want one version for each", len(files), migrations.Latest)
	}
}

// The documents name the grants for those who migrate by hand.
func TestGrants_Documents(t *testing.T) {
	t.Parallel()
	documents, err := filepath.Glob("../docs/*.md")
	if err != nil {
		t.Fatal(err)
	}
	named := regexp.MustCompile(`(?m)^GRANT \S.* ON (?:video_|read_budget).*$`)
	var got []string
	for _, file := range append(documents, "../README.md") {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for _, line := range named.FindAllString(string(text), -1) {
			got = append(got, strings.TrimSuffix(line, ";"))
		}
	}
	want := append(migrations.PollerRights.Statements("sume_poller_poller"), migrations.SubmitterRights.Statements("sume_poller_submitter")...)
	if diff := cmp.Diff(want, got, cmpopts.SortSlices(strings.Compare)); diff != "" {
		t.Errorf("(-want +documented):\n%s", diff)
	}
	schema := plainSQL(t)
	for _, grant := range append(migrations.PollerRights.Statements("<poller>"), migrations.SubmitterRights.Statements("<submitter>")...) {
		if !strings.Contains(schema, "\n--   "+grant+";\n") {
			t.Errorf("make schema does not name %s", grant)
		}
	}
}

// The trial writes every state that a job can finish in.
func TestTrial_States(t *testing.T) {
	t.Parallel()
	if want := "'{" + strings.Join(poller.FinishedStates(), ",") + "}'"; !strings.Contains(plainSQL(t), want) {
		t.Errorf("sql/trial.sql does not list %s", want)
	}
}
