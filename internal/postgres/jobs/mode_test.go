package jobs_test

import (
	"testing"
	"time"

	"sumepoller/internal/pgtest"
	"sumepoller/internal/poller"
	"sumepoller/internal/postgres/jobs"
)

// cycle runs every method once on ten due rows.
func cycle(db *pgtest.DB, s *jobs.Store) {
	db.Helper()
	r := counted(10, 1000)
	got := claim(db, s, r)
	if len(got.Jobs) != 10 || got.Day.Reads != 10 {
		db.Errorf("claimed %d rows, %d reads, want 10 and 10", len(got.Jobs), got.Day.Reads)
	}
	if _, ok, err := s.NextDue(db.Context(), []poller.LeaseID{r.Lease}); ok || err != nil {
		db.Errorf("next due but for the own leases: %v, %v", ok, err)
	}
	for _, j := range got.Jobs[:8] {
		if o := settle(db, s, finish(j.ID, r.Lease)); o[0] != poller.Written {
			db.Errorf("settle: %v", o)
		}
	}
	unread := poller.Release{JobID: got.Jobs[8].ID, Lease: r.Lease, Unread: true}
	if o := release(db, s, got.Day.Date, unread); o[0] != poller.Written {
		db.Errorf("release: %v", o)
	}
	b, err := s.Backlog(db.Context())
	if err != nil || b.Pending != 2 || b.Due != 1 || b.ReadsToday != 9 {
		db.Errorf("backlog %+v, %v", b, err)
	}
	if day, err := s.Today(db.Context()); err != nil || day.Reads != 9 {
		db.Errorf("today %+v, %v", day, err)
	}
}

// Through a transaction pooler no statement may be prepared under a name.
func TestMode_Each(t *testing.T) {
	t.Parallel()
	for _, mode := range []string{"cache_statement", "cache_describe", "describe_exec", "exec", "simple_protocol"} {
		t.Run(mode, func(t *testing.T) {
			t.Parallel()
			db := pgtest.New(t)
			db.InsertDue(10)
			cycle(db, jobs.New(pgtest.Pool(t, db.URL+"?default_query_exec_mode="+mode)))
			if n := db.Number(`SELECT count(*) FROM video_jobs WHERE final_status ->> 'sume_status' = 'completed'`); n != 8 {
				t.Errorf("%d answers kept, want 8", n)
			}
		})
	}
}

// A migration that adds a column invalidates cached statements.
func TestMode_ColumnAdded(t *testing.T) {
	t.Parallel()
	db := pgtest.New(t)
	s := jobs.New(db.Pool)
	db.InsertDue(10)
	cycle(db, s)
	db.Exec(`ALTER TABLE video_jobs ADD COLUMN customer text NOT NULL DEFAULT 'x'`)
	db.Exec(`ALTER TABLE read_budget ADD COLUMN note text`)
	db.Exec(`TRUNCATE video_jobs, read_budget`)
	s.Reset()
	db.InsertDue(10)
	cycle(db, s)
}

// A sandbox can be frozen between any two calls: it must not hold a lock then.
func TestMode_NothingLeftOpen(t *testing.T) {
	t.Parallel()
	db := pgtest.New(t)
	db.InsertDue(10)
	s := jobs.New(pgtest.Pool(t, db.URL))
	cycle(db, s)
	const open = `SELECT count(*) FROM pg_stat_activity WHERE datname = current_database()
	              AND pid <> pg_backend_pid() AND xact_start IS NOT NULL AND backend_type = 'client backend'`
	if n := db.Number(open); n != 0 {
		t.Errorf("%d transactions are open, want none", n)
	}
	const set = `SELECT current_setting('lock_timeout') || ' ' || current_setting('synchronous_commit')`
	var got string
	for range 4 {
		if err := db.Pool.QueryRow(t.Context(), set).Scan(&got); err != nil || got != "0 on" {
			t.Errorf("settings %q, %v, want them as they were", got, err)
		}
	}
}

func TestNextDue(t *testing.T) {
	t.Parallel()
	const lease = `UPDATE video_jobs SET leased_until = now() + interval '20 seconds', lease_id = '11111111111111111111111111111111' WHERE job_id = 'job_1'`
	own := []poller.LeaseID{{0x11, 0x11, 0x11, 0x11, 0x11, 0x11, 0x11, 0x11, 0x11, 0x11, 0x11, 0x11, 0x11, 0x11, 0x11, 0x11}}
	for name, c := range map[string]struct {
		rows map[string]time.Duration // late by
		then string
		own  []poller.LeaseID
		want time.Duration
		none bool
	}{
		"no row":                          {none: true},
		"due now":                         {rows: map[string]time.Duration{"job_1": time.Minute, "job_2": -time.Minute}, want: -time.Minute},
		"due later":                       {rows: map[string]time.Duration{"job_1": -time.Minute, "job_2": -time.Hour}, want: time.Minute},
		"finished":                        {rows: map[string]time.Duration{"job_1": time.Minute}, then: `UPDATE video_jobs SET state = 'completed'`, none: true},
		"leased to another":               {rows: map[string]time.Duration{"job_1": time.Minute}, then: lease, want: 20 * time.Second},
		"leased to another, one due soon": {rows: map[string]time.Duration{"job_1": time.Minute, "job_2": -5 * time.Second}, then: lease, want: 5 * time.Second},
		"leased to another, one due late": {rows: map[string]time.Duration{"job_1": time.Minute, "job_2": -time.Minute}, then: lease, want: 20 * time.Second},
		"own":                             {rows: map[string]time.Duration{"job_1": time.Minute}, then: lease, own: own, none: true},
		"own, one due later":              {rows: map[string]time.Duration{"job_1": time.Minute, "job_2": -time.Minute}, then: lease, own: own, want: time.Minute},
		"a lease past all leases":         {rows: map[string]time.Duration{"job_1": time.Minute}, then: `UPDATE video_jobs SET leased_until = 'infinity'`, want: -time.Minute},
		"due never":                       {rows: map[string]time.Duration{"job_1": time.Minute}, then: `UPDATE video_jobs SET next_poll_at = 'infinity'`, want: 36525 * 24 * time.Hour},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			db := pgtest.New(t)
			for id, late := range c.rows {
				db.Insert(id, late)
			}
			if c.then != "" {
				db.Exec(c.then)
			}
			in, ok, err := jobs.New(db.Pool).NextDue(t.Context(), c.own)
			if err != nil || ok == c.none {
				t.Fatalf("%v, %v, %v; want none: %v", in, ok, err, c.none)
			}
			if off := in - c.want; !c.none && (off > 0 || off < -10*time.Second) && c.want < 24*time.Hour {
				t.Errorf("in %v, want %v", in, c.want)
			}
		})
	}
}

func TestBacklog(t *testing.T) {
	t.Parallel()
	db := pgtest.New(t)
	for _, id := range []string{"due", "failing", "failing_lately", "leased", "finished"} {
		db.Insert(id, time.Minute)
	}
	db.Insert("oldest", 10*time.Minute)
	db.Insert("later", -time.Minute)
	db.Exec(`UPDATE video_jobs SET failing_since = now() - interval '31 minutes' WHERE job_id = 'failing'`)
	db.Exec(`UPDATE video_jobs SET failing_since = now() - interval '29 minutes' WHERE job_id = 'failing_lately'`)
	db.Exec(`UPDATE video_jobs SET leased_until = now() + interval '1 minute' WHERE job_id = 'leased'`)
	db.Exec(`UPDATE video_jobs SET state = 'completed', created_at = now() - interval '1 year' WHERE job_id = 'finished'`)
	db.Exec(`UPDATE video_jobs SET created_at = now() - interval '1 hour' WHERE job_id = 'due'`)
	db.Exec(`UPDATE video_jobs SET created_at = NULL, last_polled_at = now() - interval '2 hours' WHERE job_id = 'later'`)
	db.Exec(`INSERT INTO video_submissions (idempotency_key, request, state, created_at) VALUES
	         ('stuck', '{}', 'sending', now() - interval '11 minutes'),
	         ('under way', '{}', 'sending', now() - interval '9 minutes'),
	         ('unrecorded', '{}', 'unrecorded', now()),
	         ('rejected', '{}', 'rejected', now() - interval '1 hour'),
	         ('accepted', '{}', 'accepted', now() - interval '1 hour')`)
	db.Exec(`INSERT INTO read_budget (day, reads) VALUES ((now() AT TIME ZONE 'utc')::date, 7)`)
	got, err := jobs.New(db.Pool).Backlog(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if d := got.OldestDue - 10*time.Minute; d < 0 || d > time.Minute {
		t.Errorf("oldest due %v, want ten minutes", got.OldestDue)
	}
	if d := got.OldestPending - 2*time.Hour; d < 0 || d > time.Minute {
		t.Errorf("oldest pending %v, want two hours", got.OldestPending)
	}
	got.OldestDue, got.OldestPending = 0, 0
	want := poller.Backlog{Pending: 6, Due: 4, Failing: 1, StuckSubmissions: 2, ReadsToday: 7}
	if got != want {
		t.Errorf("got %+v, want %+v", got, want)
	}
}
