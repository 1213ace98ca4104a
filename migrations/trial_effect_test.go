package migrations_test

import (
	"context"
	"errors"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"sumepoller/migrations"
)

// listener collects the notifications of a database.
func listener(t *testing.T, pool *pgxpool.Pool, channels ...string) *pgx.Conn {
	t.Helper()
	conn, err := pgx.ConnectConfig(t.Context(), pool.Config().ConnConfig.Copy())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close(context.WithoutCancel(t.Context())) })
	for _, channel := range channels {
		if _, err := conn.Exec(t.Context(), `LISTEN `+channel); err != nil {
			t.Fatal(err)
		}
	}
	return conn
}

func TestTrial_LeavesNothing(t *testing.T) {
	t.Parallel()
	pool := empty(t, bareTable+`CREATE TABLE audit (job_id text);`+
		trigger("note", "AFTER INSERT OR UPDATE", "ROW", `INSERT INTO audit VALUES (NEW.job_id); PERFORM pg_notify('mine', NEW.job_id); RETURN NULL;`))
	conn := listener(t, pool, "mine", "video_jobs_finished", "marker")
	rows := queryColumn(t, pool, `SELECT job_id || state || next_poll_at FROM video_jobs ORDER BY 1`)
	mustUp(t, pool, migrations.Result{From: 0, To: migrations.Latest})
	mustUp(t, pool, migrations.Result{From: migrations.Latest, To: migrations.Latest})
	run(t, pool, `NOTIFY marker`)
	if got, err := conn.WaitForNotification(t.Context()); err != nil || got.Channel != "marker" {
		t.Errorf("got notification %+v, error %v; want only the marker", got, err)
	}
	if diff := cmp.Diff(rows, queryColumn(t, pool, `SELECT job_id || state || next_poll_at FROM video_jobs ORDER BY 1`)); diff != "" {
		t.Errorf("rows (-before +after):\n%s", diff)
	}
	if got := queryValue(t, pool, `SELECT (SELECT count(*) FROM audit) || ' ' || (SELECT count(*) FROM video_jobs WHERE leased_until > '-infinity' OR polls > 0 OR created_at IS NOT NULL)`); got != "0 0" {
		t.Errorf("rows of the trigger, marks on rows: got %s, want 0 0", got)
	}
	if got := queryValue(t, pool, `SELECT string_agg(tgenabled::text, '') FROM pg_trigger WHERE tgrelid = 'video_jobs'::regclass AND NOT tgisinternal`); got != "O" {
		t.Errorf("triggers: got %s, want them on as before", got)
	}
}

// A trigger that hangs ends the trial and does not delay other programs.
func TestTrial_LockTime(t *testing.T) {
	t.Parallel()
	pool := empty(t, threeColumns+trigger("hang", "BEFORE INSERT", "ROW", `PERFORM pg_sleep(30); RETURN NEW;`))
	config := pool.Config().ConnConfig.Copy()
	config.DefaultQueryExecMode = pgx.QueryExecModeSimpleProtocol
	ctx, stop := context.WithCancel(t.Context())
	var theirs program
	var writing sync.WaitGroup
	writing.Go(func() {
		conn, err := pgx.ConnectConfig(t.Context(), config)
		if err != nil {
			t.Error(err)
			return
		}
		defer func() { _ = conn.Close(context.WithoutCancel(ctx)) }()
		if err := theirs.write(ctx, conn); err != nil && !errors.Is(err, context.Canceled) {
			t.Errorf("the other program: %v", err)
		}
	})
	got, err := up(t, pool)
	stop()
	writing.Wait()
	if err != nil || len(got.Warnings) != 1 || !strings.Contains(got.Warnings[0], "slow trigger") {
		t.Errorf("got %+v, error %v; want a warning of a slow trigger", got, err)
	}
	if slowest := time.Duration(theirs.slowest.Load()); slowest > 3*time.Second {
		t.Errorf("the slowest statement of the other program took %v, want at most 3s", slowest)
	}
}

func TestTrial_OtherOwner(t *testing.T) {
	t.Parallel()
	f := owned(t, bareTable+`ALTER TABLE video_jobs ADD CONSTRAINT words CHECK (state <> 'expired') NOT VALID; UPDATE video_jobs SET state = 'done' WHERE job_id = 'job_2';
ALTER TABLE video_jobs ADD CONSTRAINT live CHECK (state <> 'done') NOT VALID;`)
	run(t, f.pool, `ALTER ROLE "`+f.migrator+`" NOINHERIT`, `GRANT "`+f.owner+`" TO "`+f.migrator+`"`)
	for range 2 {
		got, err := upAs(t, f.pool, f.migrator)
		if err != nil {
			t.Fatal(err)
		}
		all := strings.Join(got.Warnings, "\n")
		if len(got.Warnings) != 2 || !strings.Contains(all, "refuses state expired (constraint words") || !strings.Contains(all, `constraint live of video_jobs is NOT VALID, and rows break it, such as job_id "job_2"`) {
			t.Errorf("warnings: got %q", got.Warnings)
		}
	}
}

func TestTrial_OtherSchema(t *testing.T) {
	t.Parallel()
	pool := empty(t, `CREATE SCHEMA "video jobs"; SET search_path = "video jobs";`+bareTable+
		`ALTER TABLE video_jobs ADD CONSTRAINT words CHECK (state <> 'expired'), REPLICA IDENTITY NOTHING; RESET search_path`)
	run(t, pool, `ALTER DATABASE `+pool.Config().ConnConfig.Database+` SET search_path = "video jobs", public`)
	got, err := up(t, pool)
	if err != nil || len(got.Warnings) != 2 || !strings.Contains(strings.Join(got.Warnings, "\n"), "refuses state expired (constraint words") {
		t.Errorf("got %+v, error %v", got, err)
	}
	run(t, pool, `CREATE PUBLICATION feed FOR TABLE "video jobs".video_jobs`)
	got, err = up(t, pool)
	if err != nil || !strings.Contains(strings.Join(got.Warnings, "\n"), "publication feed") {
		t.Errorf("got %+v, error %v", got, err)
	}
}
