package jobs_test

import (
	"testing"
	"time"

	"sumepoller/internal/pgtest"
	"sumepoller/internal/poller"
	"sumepoller/internal/postgres/jobs"
)

// trigger makes the table run body for each update of job_1 that meets the condition when.
func trigger(db *pgtest.DB, when, body string) {
	db.Exec(`CREATE FUNCTION own() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN ` + body + ` END $$`)
	db.Exec(`CREATE TRIGGER own BEFORE UPDATE ON video_jobs FOR EACH ROW WHEN (new.job_id = 'job_1' AND ` + when + `) EXECUTE FUNCTION own()`)
}

// errorAfter is what a run settles instead of a refused settlement.
func errorAfter(s poller.Settlement) poller.Settlement {
	return poller.Settlement{
		JobID: s.JobID, Lease: s.Lease, Delay: time.Minute, Polled: true, Class: poller.WriteRefused, Error: "refused settle not kept",
	}
}

// A trigger that drops or changes writes causes a write error of its row: the
// outcome is neither Locked nor Written.
func TestSettle_TriggerChangesWrite(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		when, body string
		settle     func(string, poller.LeaseID) poller.Settlement
	}{
		"finish dropped":     {`new.state <> 'pending'`, `RETURN NULL;`, finish},
		"finish kept old":    {`new.state <> 'pending'`, `RETURN old;`, finish},
		"finish reopened":    {`new.state <> 'pending'`, `new.state := 'pending'; RETURN new;`, finish},
		"reschedule dropped": {`new.polls > old.polls AND new.last_error IS NULL`, `RETURN NULL;`, hourLater},
		"row made due":       {`new.polls > old.polls AND new.last_error IS NULL`, `new.next_poll_at := now() - interval '1 hour'; RETURN new;`, hourLater},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			db := pgtest.New(t)
			db.InsertDue(2)
			trigger(db, c.when, c.body)
			s := jobs.New(db.Pool)
			r := uncounted(2)
			claim(t, s, r)
			refused := c.settle("job_1", r.Lease)
			if got := settle(t, s, refused, finish("job_2", r.Lease)); got[0] != poller.Refused || got[1] != poller.Written {
				t.Errorf("outcomes %v, want Refused and Written", got)
			}
			if got := settle(t, s, errorAfter(refused)); got[0] != poller.Written {
				t.Errorf("the error: %v, want Written", got[0])
			}
			const written = `SELECT count(*) FROM video_jobs WHERE job_id = 'job_1' AND state = 'pending' AND leased_until = '-infinity'
				AND last_error = 'refused settle not kept' AND consecutive_errors = 1 AND polls = 1 AND next_poll_at > now()`
			if db.Number(written) != 1 {
				t.Errorf("the row: %+v, want one error and one read", readRow(db, "job_1"))
			}
			if got := claim(t, s, uncounted(2)); len(got.Jobs) > 0 {
				t.Errorf("claimed %v again at once", got.Jobs)
			}
		})
	}
}

func hourLater(id string, lease poller.LeaseID) poller.Settlement {
	return reschedule(id, lease, time.Hour)
}

// Where the error is refused too, the row is left out of the run.
func TestSettle_ErrorRefusedToo(t *testing.T) {
	t.Parallel()
	for name, body := range map[string]string{
		"both dropped":             `RETURN NULL;`,
		"both kept old":            `RETURN old;`,
		"reopened, error kept old": `IF new.state = 'pending' THEN RETURN old; END IF; new.state := 'pending'; RETURN new;`,
		"reopened, error dropped":  `IF new.state = 'pending' THEN RETURN NULL; END IF; new.state := 'pending'; RETURN new;`,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			db := pgtest.New(t)
			db.InsertDue(1)
			s := jobs.New(db.Pool)
			r := uncounted(1)
			claim(t, s, r)
			trigger(db, `(new.state <> 'pending' OR new.consecutive_errors > 0)`, body)
			finish := finish("job_1", r.Lease)
			for _, one := range []poller.Settlement{finish, finish, errorAfter(finish)} { // the first answer is lost
				if got := settle(t, s, one); got[0] != poller.Refused {
					t.Errorf("%q: %v, want Refused", one.State, got[0])
				}
			}
			db.Exec(`UPDATE video_jobs SET leased_until = '-infinity', next_poll_at = now() - interval '1 hour'`)
			if got := claim(t, s, uncounted(1)); len(got.Jobs)+len(got.Refused) > 0 {
				t.Errorf("claimed %+v in the same run", got)
			}
		})
	}
}

func TestRelease_TriggerDropsWrite(t *testing.T) {
	t.Parallel()
	db := pgtest.New(t)
	db.InsertDue(2)
	s := jobs.New(db.Pool)
	r := counted(2, 10)
	got := claim(t, s, r)
	trigger(db, `new.leased_until = '-infinity'`, `RETURN NULL;`)
	ends := release(t, s, got.QuotaDate, poller.Release{JobID: "job_1", Lease: r.Lease, Unread: true}, poller.Release{JobID: "job_2", Lease: r.Lease, Unread: true})
	if ends[0] != poller.Refused || ends[1] != poller.Written {
		t.Errorf("outcomes %v, want Refused and Written", ends)
	}
	if n := db.Number(`SELECT sum(reads)::integer FROM read_budget`); n != 1 {
		t.Errorf("%d reads are taken, want 1", n)
	}
}

// The table began to refuse a row between a claim and its second attempt.
func TestClaim_AskedAgainRefused(t *testing.T) {
	t.Parallel()
	db := pgtest.New(t)
	db.InsertDue(3)
	s := jobs.New(db.Pool)
	r := uncounted(3)
	claim(t, s, r)
	trigger(db, `new.leased_until > now()`, `RAISE check_violation;`)
	got := claim(t, s, r)
	if len(got.Jobs) != 2 || len(got.Refused) != 1 || got.Refused[0].JobID != "job_1" || got.Refused[0].SQLState != "23514" {
		t.Errorf("got %v, refused %+v, want two jobs and job_1 refused", ids(got.Jobs), got.Refused)
	}
}
