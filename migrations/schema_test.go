package migrations_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"sumepoller/migrations"
)

// plainSQL is what a person feeds to psql.
func plainSQL(t *testing.T) string {
	t.Helper()
	sql, err := migrations.Schema()
	if err != nil {
		t.Fatal(err)
	}
	return sql
}

func TestSchemaByHandEqualsTheAutomaticOne(t *testing.T) {
	t.Parallel()
	for name, setup := range map[string]string{
		"on an empty database":    `SELECT`,
		"on an adopted table":     threeColumns,
		"where the index lacks":   threeColumns + `DROP INDEX their_due_idx`,
		"on a varchar table":      `CREATE TABLE video_jobs (job_id varchar(80) NOT NULL UNIQUE, state varchar, next_poll_at timestamptz(3))`,
		"after an automatic one":  ``,
		"where it went wrong now": threeColumns + `UPDATE pg_index SET indisvalid = false WHERE indexrelid = 'their_due_idx'::regclass`,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			automatic, byHand := empty(t, setup), empty(t, setup)
			mustUp(t, automatic, migrations.Result{From: 0, To: migrations.Latest})
			if setup == "" {
				mustUp(t, byHand, migrations.Result{From: 0, To: migrations.Latest})
			}
			run(t, byHand, plainSQL(t), plainSQL(t))
			if diff := cmp.Diff(shape(t, automatic), shape(t, byHand)); diff != "" {
				t.Errorf("(-automatic +by hand):\n%s", diff)
			}
			mustUp(t, byHand, migrations.Result{From: migrations.Latest, To: migrations.Latest})
		})
	}
}

func TestSchemaByHandRefusesWholly(t *testing.T) {
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
