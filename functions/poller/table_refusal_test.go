package main_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"sumepoller/internal/devstack/server"
	"sumepoller/internal/pgtest"
	"sumepoller/internal/poller"
	"sumepoller/internal/sume/sumetest"
	"sumepoller/migrations"
)

// trigger adds a BEFORE UPDATE trigger to video_jobs. when is a condition on OLD
// and NEW, body PL/pgSQL.
func (s *stage) trigger(t *testing.T, when, body string) {
	t.Helper()
	s.exec(t, `CREATE FUNCTION theirs() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN `+body+` END $$`)
	s.exec(t, `CREATE TRIGGER theirs BEFORE UPDATE ON video_jobs FOR EACH ROW WHEN (`+when+`) EXECUTE FUNCTION theirs()`)
}

// wantWarning wants a line of the log that warns of a row.
func (b *sandbox) wantWarning(t *testing.T, id string, parts ...string) {
	t.Helper()
	for line := range strings.Lines(b.Log()) {
		found := strings.Contains(line, `"level":"WARN"`) && strings.Contains(line, `"job_id":"`+id+`"`)
		for _, part := range parts {
			found = found && strings.Contains(line, part)
		}
		if found {
			return
		}
	}
	t.Errorf("no warning names %s with %q in\n%s", id, parts, b.Log())
}

// One bad row can stop a whole queue: the claim's statement fails for all rows, or
// claims the same row again and again.
func TestTableRefuses_OneRow(t *testing.T) {
	t.Parallel()
	const whole, finish = `old.job_id = 'bad'`, `old.job_id = 'bad' AND new.state = 'completed'`
	raise := func(code string) string {
		return `RAISE EXCEPTION 'not this one' USING ERRCODE = '` + code + `';`
	}
	for name, c := range map[string]struct {
		constraint, when, body string
		warning                string
	}{
		"constraint not valid": {constraint: `CHECK (job_id <> 'bad') NOT VALID`, warning: `"sqlstate":"23514"`},
		"raises P0001":         {when: whole, body: raise("P0001"), warning: `"sqlstate":"P0001"`},
		"raises 23514":         {when: whole, body: raise("23514"), warning: `"refused_by":"function theirs"`},
		"raises 21000":         {when: whole, body: raise("21000"), warning: `"sqlstate":"21000"`},
		"raises 42703":         {when: whole, body: raise("42703"), warning: `"sqlstate":"42703"`},
		"raises 0A000":         {when: whole, body: raise("0A000"), warning: `"sqlstate":"0A000"`},
		"returns NULL":         {when: whole, body: `RETURN NULL;`, warning: `"refused_by":"trigger theirs"`},
		"returns OLD":          {when: whole, body: `RETURN old;`, warning: `"refused_by":"trigger theirs"`},
		"raises at finish":     {when: finish, body: raise("44000"), warning: `"sqlstate":"44000"`},
		"NULL at finish":       {when: finish, body: `RETURN NULL;`, warning: `"refused_by":"trigger theirs"`},
		"OLD at finish":        {when: finish, body: `RETURN old;`, warning: `"refused_by":"trigger theirs"`},
		"pending again":        {when: finish, body: `new.state := 'pending'; RETURN new;`, warning: `"refused_by":"trigger theirs"`},
		"due at once":          {when: whole, body: `new.next_poll_at := now() - interval '1 hour'; IF new.state = 'completed' THEN new.state := 'pending'; END IF; RETURN new;`, warning: `"refused_by":"trigger theirs"`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newStage(t)
			s.due(t, sumetest.Plan{}, append([]string{"bad"}, ids("good", 20)...)...)
			if c.constraint != "" {
				s.exec(t, `ALTER TABLE video_jobs ADD CONSTRAINT theirs `+c.constraint)
			} else {
				s.trigger(t, c.when, c.body)
			}
			b := s.sandbox(t, "POLL_BUDGET=4s")
			for run := range 3 {
				sum := b.tick(t)
				if sum.Stopped == poller.StoppedDrained && sum.DueRemaining > 0 || sum.LostLeases > 0 {
					t.Errorf("run %d: %s", run+1, sum.JSON())
				}
				if run == 0 && sum.Errors[poller.WriteRefused] == 0 {
					t.Errorf("run %d counts nothing as refused: %s", run+1, sum.JSON())
				}
			}
			if n := s.number(t, completed); n != 20 {
				t.Errorf("%d good rows completed, want 20", n)
			}
			if reads := s.api.Stats().Jobs["bad"].Reads; reads > 12 {
				t.Errorf("%d reads of the row that cannot be written, want at most 12", reads)
			}
			b.wantWarning(t, "bad", c.warning)
			if answer := b.ask(t, `{"inspect": {}}`); !strings.Contains(string(answer.Payload), `"bad"`) {
				t.Errorf("inspect does not show the row: %s", answer.Payload)
			}
		})
	}
}

func TestTableRefuses_FinalState(t *testing.T) {
	t.Parallel()
	s := newStage(t)
	s.exec(t, `ALTER TABLE video_jobs ADD CONSTRAINT known CHECK (state IN ('pending', 'completed', 'failed'))`)
	s.due(t, sumetest.Plan{End: "canceled"}, "job_canceled")
	s.due(t, sumetest.Plan{}, "job_good")
	b := s.sandbox(t, "POLL_BUDGET=4s")
	sum := b.tick(t)
	if sum.LostLeases != 0 || sum.Errors[poller.WriteRefused] != 1 || sum.Finished["completed"] != 1 {
		t.Errorf("summary %s, want one refused, one completed and no lost lease", sum.JSON())
	}
	row := s.entries(t)["job_canceled"]
	if row.State != "pending" || row.Status != "canceled" || !row.Failing || row.Errors != 1 || row.Held ||
		!strings.Contains(row.Error, "23514") || !strings.Contains(row.Error, "known") || !row.within(backoff, 0.25) {
		t.Errorf("row %+v, want an error that names the constraint, and the back-off", row)
	}
	b.wantWarning(t, "job_canceled", `"sqlstate":"23514"`, `"refused_by":"constraint known"`)
	s.exec(t, `UPDATE video_jobs SET failing_since = now() - interval '31 minutes' WHERE job_id = 'job_canceled'`)
	b.tick(t)
	if log := b.Log(); !strings.Contains(log, `"FailingJobs":1`) {
		t.Errorf("no metric counts the row as failing in\n%s", log)
	}
	if answer := b.ask(t, `{"inspect": {}}`); !strings.Contains(string(answer.Payload), "known") {
		t.Errorf("inspect does not show the reason: %s", answer.Payload)
	}
	s.exec(t, `ALTER TABLE video_jobs DROP CONSTRAINT known`)
	s.soon(t)
	b.tick(t)
	s.ended(t, map[string]int{"completed": 1, "canceled": 1})
}

// A trigger that sends the whole row exceeds NOTIFY's limit of 8,000 bytes.
func TestTableRefuses_LongAnswer(t *testing.T) {
	t.Parallel()
	s := newStage(t)
	s.due(t, sumetest.Plan{}, "job_long", "job_short")
	s.api.SetFault("job_long", sumetest.Fault{Body: `{"terminal":true,"sume_status":"completed","note":"` + strings.Repeat("x", 9000) + `"}`})
	s.trigger(t, `new.state = 'completed'`, `PERFORM pg_notify('jobs', row_to_json(new)::text); RETURN new;`)
	b := s.sandbox(t, "POLL_BUDGET=4s")
	b.tick(t)
	s.ended(t, map[string]int{"completed": 2})
	s.zero(t, `SELECT count(*) FROM video_jobs WHERE job_id = 'job_short' AND final_status IS NULL`)
	b.wantWarning(t, "job_long", `"write":"final_status"`, `"sqlstate":"22023"`)
}

// A listener that stays in a transaction keeps the server from emptying its queue of
// notifications.
func TestTableRefuses_NotifyQueueFull(t *testing.T) {
	t.Parallel()
	own, err := server.Start(t.Context(), server.Options{Settings: []string{"max_notify_queue_pages=64"}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(own.Stop)
	pool := pgtest.Pool(t, own.URL())
	if _, err := migrations.Up(t.Context(), pool.Config()); err != nil {
		t.Fatal(err)
	}
	s := stageOn(t, own.URL())
	s.due(t, sumetest.Plan{}, ids("job", 10)...)
	listener, err := pgx.Connect(t.Context(), own.URL())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = listener.Close(context.WithoutCancel(t.Context())) })
	for _, sql := range []string{`LISTEN other`, `BEGIN`, `SELECT 1`} {
		if _, err := listener.Exec(t.Context(), sql); err != nil {
			t.Fatal(err)
		}
	}
	full := false
	for i := 0; i < 1000 && !full; i++ {
		_, err := pool.Exec(t.Context(), fmt.Sprintf(`SELECT pg_notify('filler', %d || repeat('x', 7900))`, i))
		full = err != nil && strings.Contains(err.Error(), "54000")
	}
	if !full {
		t.Fatal("the queue does not fill")
	}
	b := s.sandbox(t, "POLL_BUDGET=4s")
	sum := b.tick(t)
	s.ended(t, map[string]int{"completed": 10})
	if sum.LostLeases != 0 || sum.Finished["completed"] != 10 {
		t.Errorf("summary %s, want 10 completed and no lost lease", sum.JSON())
	}
	s.zero(t, `SELECT count(*) FROM video_jobs WHERE final_status IS NULL`)
	if n := strings.Count(b.Log(), `"write":"announcement"`); n != 1 {
		t.Errorf("%d warnings of the full queue, want one:\n%s", n, b.Log())
	}
}

// A trigger that fails for one row with an SQLSTATE of a server error, or waits for
// another program's lock, stops no other row.
func TestTableRefuses_BusyRow(t *testing.T) {
	t.Parallel()
	for name, body := range map[string]string{
		"canceled":      `RAISE EXCEPTION 'late' USING ERRCODE = '57014';`,
		"disk full":     `RAISE EXCEPTION 'no space' USING ERRCODE = '53100';`,
		"internal":      `RAISE EXCEPTION 'broken' USING ERRCODE = 'XX000';`,
		"serialization": `RAISE EXCEPTION 'again' USING ERRCODE = '40001';`,
		"lock":          `UPDATE customers SET n = 1; RETURN new;`,
	} {
		for _, when := range []string{"claim", "finish"} {
			if name == "serialization" && when == "finish" {
				continue // repeated until its time is over
			}
			t.Run(name+" at "+when, func(t *testing.T) {
				t.Parallel()
				s := newStage(t)
				s.due(t, sumetest.Plan{}, append([]string{"bad_0"}, append([]string{"bad_1"}, ids("good", 20)...)...)...)
				s.exec(t, `CREATE TABLE customers (n integer)`)
				s.exec(t, `INSERT INTO customers VALUES (0)`)
				condition := `old.job_id = 'bad_0'`
				if when == "finish" {
					s.slow(300*time.Millisecond, 300*time.Millisecond) // so that one batch holds them
					condition = `old.job_id = 'bad_1' AND new.state = 'completed'`
				}
				s.trigger(t, condition, body)
				tx, err := s.db.Begin(t.Context())
				if err != nil {
					t.Fatal(err)
				}
				defer func() { _ = tx.Rollback(context.WithoutCancel(t.Context())) }()
				if _, err := tx.Exec(t.Context(), `UPDATE customers SET n = 2`); err != nil {
					t.Fatal(err)
				}
				b := s.sandbox(t, "POLL_BUDGET=6s", "SUME_READS_PER_DAY=1000", "POLL_LEASE=18s")
				sum := b.tick(t)
				if n := s.number(t, completed); n != 21 || s.api.Stats().Reads > 22 {
					t.Errorf("%d others completed with %d reads, want 21 of one read each: %s", n, s.api.Stats().Reads, sum.JSON())
				}
			})
		}
	}
}

// A row whose state a trigger changes as it is leased is not read.
func TestTableRefuses_LeasedState(t *testing.T) {
	t.Parallel()
	s := newStage(t)
	s.due(t, sumetest.Plan{}, append([]string{"bad"}, ids("good", 20)...)...)
	s.trigger(t, `old.job_id = 'bad'`, `new.state := 'processing'; RETURN new;`)
	b := s.sandbox(t, "POLL_BUDGET=4s")
	sum := b.tick(t)
	if sum.Finished["completed"] != 20 || sum.Errors[poller.WriteRefused] != 1 || sum.LostLeases != 0 || s.api.Stats().Jobs["bad"].Reads != 0 {
		t.Errorf("summary %s, want 20 completed, one refused and not read", sum.JSON())
	}
	b.wantWarning(t, "bad", `"refused_by":"trigger theirs"`)
}

// A warning names a claimed row that is deleted, or that a broken index hides, before
// it is settled.
func TestSettle_RowGone(t *testing.T) {
	t.Parallel()
	s := newStage(t)
	s.due(t, sumetest.Plan{}, "job_1")
	s.slow(time.Second, time.Second)
	b := s.sandbox(t, "POLL_BUDGET=4s")
	answer := b.begin(t, "")
	until(t, "the read", func() bool { return s.api.Stats().InFlight == 1 })
	s.exec(t, `DELETE FROM video_jobs`)
	if sum := answered(t, answer); sum.LostLeases != 1 {
		t.Errorf("summary %s, want one lost lease", sum.JSON())
	}
	b.wantWarning(t, "job_1")
}

func TestLongRunning_ReadRarely(t *testing.T) {
	t.Parallel()
	s := newStage(t)
	s.due(t, sumetest.Plan{End: sumetest.Never, Hint: 15}, "old", "adopted", "young")
	s.exec(t, `UPDATE video_jobs SET created_at = now() - interval '45 days', polls = 9000 WHERE job_id = 'old'`)
	s.exec(t, `UPDATE video_jobs SET created_at = NULL, polls = 9000 WHERE job_id = 'adopted'`)
	s.sandbox(t, "POLL_BUDGET=4s").tick(t)
	for id, least := range map[string]time.Duration{"old": 10 * time.Minute, "adopted": 10 * time.Minute, "young": 15 * time.Second} {
		if row := s.entries(t)[id]; !row.within(least, 0.1) {
			t.Errorf("%s is read again after %v, want %v", id, row.Delay, least)
		}
	}
}
