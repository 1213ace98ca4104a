package jobs_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"sumepoller/internal/pgtest"
	"sumepoller/internal/poller"
	"sumepoller/internal/postgres/jobs"
)

// userTrigger adds a BEFORE UPDATE trigger, as a user may have.
func userTrigger(db *pgtest.DB, when, body string) {
	db.Helper()
	db.Exec(`CREATE FUNCTION theirs() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN ` + body + ` END $$`)
	db.Exec(`CREATE TRIGGER theirs BEFORE UPDATE ON video_jobs FOR EACH ROW WHEN (` + when + `) EXECUTE FUNCTION theirs()`)
}

func TestClaim_RefusedRows(t *testing.T) {
	t.Parallel()
	db := pgtest.New(t)
	db.InsertDue(64)
	userTrigger(db, `old.job_id IN ('job_3', 'job_17', 'job_64')`, `RAISE EXCEPTION 'no' USING ERRCODE = 'TR001';`)
	s := jobs.New(db.Pool)
	got := claim(t, s, counted(64, 1000))
	if len(got.Jobs) != 61 || got.Day.Reads != 61 {
		t.Errorf("%d rows claimed, %d reads counted; want 61", len(got.Jobs), got.Day.Reads)
	}
	refused := []poller.WriteError{}
	for _, id := range []string{"job_64", "job_17", "job_3"} {
		refused = append(refused, poller.WriteError{JobID: id, SQLState: "TR001", Object: "function theirs", Write: poller.WriteClaim})
	}
	if diff := cmp.Diff(refused, got.Refused); diff != "" {
		t.Errorf("refused (-want +got):\n%s", diff)
	}
	if again := claim(t, s, counted(64, 1000)); len(again.Jobs) > 0 || len(again.Refused) > 0 {
		t.Errorf("the next claim brings %+v, want nothing", again)
	}
	if in, ok, err := s.NextDue(t.Context(), nil); err != nil || ok && in <= 0 {
		t.Errorf("a look shows a row as due in %v, error %v; want none but the leased", in, err)
	}
	s.Reset()
	if again := claim(t, s, counted(64, 1000)); len(again.Refused) != 3 {
		t.Errorf("a new run is refused %d rows, want 3", len(again.Refused))
	}
}

func TestClaim_StatementRefused(t *testing.T) {
	t.Parallel()
	for name, setup := range map[string]string{
		"a column is gone": `ALTER TABLE video_jobs DROP COLUMN lost_leases`,
		"no replica identity": `ALTER TABLE video_jobs REPLICA IDENTITY NOTHING;
		                        CREATE PUBLICATION theirs FOR TABLE video_jobs`,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			db := pgtest.New(t)
			db.InsertDue(8)
			conn := db.Connect()
			if _, err := conn.PgConn().Exec(t.Context(), setup).ReadAll(); err != nil {
				t.Fatal(err)
			}
			if got, err := jobs.New(db.Pool).Claim(t.Context(), uncounted(8)); err == nil {
				t.Errorf("claimed %+v, want an error of the whole claim", got)
			}
		})
	}
}

func TestSettle_DeferredConstraint(t *testing.T) {
	t.Parallel()
	db := pgtest.New(t)
	db.InsertDue(20)
	db.Exec(`CREATE FUNCTION theirs() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RAISE check_violation; END $$`)
	db.Exec(`CREATE CONSTRAINT TRIGGER theirs AFTER UPDATE ON video_jobs DEFERRABLE INITIALLY DEFERRED FOR EACH ROW
	         WHEN (new.job_id = 'job_7' AND new.state = 'completed') EXECUTE FUNCTION theirs()`)
	s := jobs.New(db.Pool)
	r := uncounted(20)
	claim(t, s, r)
	var batch []poller.Settlement
	for i := range 20 {
		batch = append(batch, finish(fmt.Sprintf("job_%d", i+1), r.Lease))
	}
	got := settle(t, s, batch...)
	if count(got, poller.Written) != 19 || got[6] != poller.Refused {
		t.Errorf("outcomes %v, want the seventh declined and the others done", got)
	}
	if n := db.Number(`SELECT count(*) FROM video_jobs WHERE state = 'completed'`); n != 19 {
		t.Errorf("%d rows completed, want 19", n)
	}
}

func TestRelease_RefusedRow(t *testing.T) {
	t.Parallel()
	db := pgtest.New(t)
	db.InsertDue(8)
	s := jobs.New(db.Pool)
	r := counted(8, 100)
	got := claim(t, s, r)
	userTrigger(db, `old.job_id = 'job_5'`, `RAISE EXCEPTION 'no';`)
	var rows []poller.Release
	for _, j := range got.Jobs {
		rows = append(rows, poller.Release{JobID: j.ID, Lease: r.Lease, Unread: true})
	}
	results := release(t, s, got.QuotaDate, rows...)
	if count(results, poller.Written) != 7 || count(results, poller.Refused) != 1 {
		t.Errorf("outcomes %v, want seven done and one declined", results)
	}
	if n := db.Number(readsToday); n != 1 {
		t.Errorf("%d reads counted, want the one of the row that could not be released", n)
	}
}

func TestRelease_OrderOfRowsGivenBack(t *testing.T) {
	t.Parallel()
	db := pgtest.New(t)
	db.InsertDue(4)
	s := jobs.New(db.Pool)
	r := uncounted(2)
	claim(t, s, r) // job_4 and job_3
	release(t, s, "", poller.Release{JobID: "job_4", Lease: r.Lease}, poller.Release{JobID: "job_3", Lease: r.Lease, Unread: true})
	got := ids(claim(t, s, uncounted(4)).Jobs)
	if diff := cmp.Diff([]string{"job_3", "job_2", "job_1", "job_4"}, got); diff != "" {
		t.Errorf("order of the next claim (-want +got):\n%s", diff)
	}
}

// The answer to a claim is lost just before midnight, and asked for after it.
func TestClaim_AskedAgainAfterMidnight(t *testing.T) {
	t.Parallel()
	db := pgtest.New(t)
	db.InsertDue(3)
	db.Exec(`UPDATE video_jobs SET lost_leases = 1, lease_id = gen_random_uuid(), leased_until = now() - interval '1 hour' WHERE job_id = 'job_2'`)
	s := jobs.New(db.Pool)
	r := counted(3, 100)
	first := claim(t, s, r)
	// A day passes.
	db.Exec(`UPDATE video_jobs SET next_poll_at = next_poll_at - interval '1 day', leased_until = leased_until - interval '1 day'`)
	db.Exec(`UPDATE read_budget SET day = day - 1`)
	again := claim(t, s, r)
	if len(again.Jobs) != 3 || again.Day.Reads != 0 {
		t.Fatalf("asked again: %d rows, %d reads today; want 3 and 0", len(again.Jobs), again.Day.Reads)
	}
	yesterday := pgtest.Value[string](db, `SELECT to_char((now() AT TIME ZONE 'utc')::date - 1, 'YYYY-MM-DD')`)
	if first.QuotaDate == yesterday || again.QuotaDate != yesterday {
		t.Errorf("charged to %s, then to %s; want today, then %s", first.QuotaDate, again.QuotaDate, yesterday)
	}
	release(t, s, again.QuotaDate, poller.Release{JobID: "job_1", Lease: r.Lease, Unread: true})
	if n := db.Number(`SELECT reads FROM read_budget WHERE day = $1::text::date`, yesterday); n != 2 {
		t.Errorf("%d reads of yesterday, want 2", n)
	}
}

func TestNextDue_OddTimes(t *testing.T) {
	t.Parallel()
	for name, at := range map[string]string{
		"-infinity": `'-infinity'`, "4713 BC": `'4713-01-01 00:00:00+00 BC'`, "infinity": `'infinity'`, "the year 294276": `'294276-12-31 00:00:00+00'`,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			db := pgtest.New(t)
			db.Insert("good", time.Minute)
			db.Exec(`INSERT INTO video_jobs (job_id, next_poll_at) VALUES ('odd', ` + at + `)`)
			s := jobs.New(db.Pool)
			for _, j := range claim(t, s, uncounted(4)).Jobs {
				if j.Late < 0 {
					t.Errorf("%s is %v late", j.ID, j.Late)
				}
			}
			if _, _, err := s.NextDue(t.Context(), nil); err != nil {
				t.Error(err)
			}
			if _, err := s.Backlog(t.Context()); err != nil {
				t.Error(err)
			}
		})
	}
}
