package migrations_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"sumepoller/migrations"
)

// owned gives the table to another role. The migrator may create tables, as a
// database's administrator may.
func owned(t *testing.T, setup string) (f fixture) {
	t.Helper()
	f.pool = empty(t, setup)
	f.owner = login(t, f.pool, "NOLOGIN")
	f.migrator = login(t, f.pool, "LOGIN")
	run(t, f.pool, `GRANT CREATE, USAGE ON SCHEMA public TO "`+f.owner+`", "`+f.migrator+`"`,
		`ALTER TABLE video_jobs OWNER TO "`+f.owner+`"`)
	return f
}

func TestOwner_MayNotActFor(t *testing.T) {
	t.Parallel()
	f := owned(t, threeColumns)
	before := shape(t, f.pool)
	_, err := upAs(t, f.pool, f.migrator)
	want := "GRANT " + f.owner + " TO " + f.migrator
	if err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "\n") {
		t.Errorf("got error %v, want one line with %q", err, want)
	}
	if diff := cmp.Diff(before, shape(t, f.pool)); diff != "" {
		t.Errorf("(-before +after):\n%s", diff)
	}
}

func TestOwner_MayActFor(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ setup, attribute string }{
		"with its rights":             {threeColumns, "INHERIT"},
		"by SET ROLE alone":           {threeColumns, "NOINHERIT"},
		"by SET ROLE, and no index":   {threeColumns + `DROP INDEX their_due_idx`, "NOINHERIT"},
		"by its rights, and no index": {threeColumns + `DROP INDEX their_due_idx`, "INHERIT"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := owned(t, c.setup)
			run(t, f.pool, `ALTER ROLE "`+f.migrator+`" `+c.attribute, `GRANT "`+f.owner+`" TO "`+f.migrator+`"`)
			got, err := upAs(t, f.pool, f.migrator)
			if want := (migrations.Result{From: 0, To: migrations.Latest}); err != nil || cmp.Diff(want, got) != "" {
				t.Errorf("got %+v, error %v; want %+v", got, err, want)
			}
			if got := queryValue(t, f.pool, `SELECT tableowner::text FROM pg_tables WHERE tablename = 'video_jobs'`); got != f.owner {
				t.Errorf("owner: got %s, want %s as before", got, f.owner)
			}
		})
	}
}

func TestUp_MayNotCreate(t *testing.T) {
	t.Parallel()
	pool := empty(t)
	migrator := login(t, pool, "LOGIN")
	run(t, pool, `REVOKE CREATE ON SCHEMA public FROM public`)
	_, err := upAs(t, pool, migrator)
	if want := "GRANT USAGE, CREATE ON SCHEMA public TO " + migrator; err == nil || !strings.Contains(err.Error(), want) {
		t.Errorf("got error %v, want %q", err, want)
	}
}
