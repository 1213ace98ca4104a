package jobs_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/jackc/pgx/v5/pgxpool"

	"sumepoller/internal/config"
	"sumepoller/internal/operator"
	"sumepoller/internal/pgtest"
	"sumepoller/internal/poller"
	"sumepoller/internal/postgres"
	"sumepoller/internal/postgres/jobs"
	"sumepoller/internal/postgres/requests"
	"sumepoller/internal/postgres/submissions"
)

// serverSettings are defaults of a database that must change nothing.
var serverSettings = []string{
	`"DateStyle" = 'German, DMY'`, `"DateStyle" = 'SQL, DMY'`, `"DateStyle" = 'Postgres, MDY'`,
	`"IntervalStyle" = 'sql_standard'`, `"IntervalStyle" = 'postgres_verbose'`, `"IntervalStyle" = 'iso_8601'`,
	`"TimeZone" = 'Asia/Kolkata'`, `bytea_output = 'escape'`, `extra_float_digits = -15`,
	`client_encoding = 'LATIN1'`, `standard_conforming_strings = off`, `search_path = elsewhere, public`,
	`default_transaction_isolation = 'serializable'`, `default_transaction_isolation = 'repeatable read'`,
	`default_transaction_deferrable = on`, `default_transaction_read_only = off`,
	`row_security = off`, `statement_timeout = '5s'`, `idle_in_transaction_session_timeout = '20ms'`,
}

// driverModes are ways in which the driver sends statements: prepared and
// cached, unprepared, and in the simple protocol.
var driverModes = []string{"cache_statement", "exec", "simple_protocol"}

// connectAs connects as a function does, with one connection.
func connectAs(t *testing.T, url, mode string) *pgxpool.Pool {
	t.Helper()
	pool, err := postgres.Connect(t.Context(), config.Database{URL: url + "?default_query_exec_mode=" + mode, MaxConns: 1}, nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { postgres.Close(pool, time.Second) })
	return pool
}

// eachSetting runs every store on a fresh database for each setting and mode. reach
// returns the URL through which the database is reached.
//
// In an unprepared mode a driver reads times as text, whose form depends on the
// server's DateStyle.
func eachSetting(t *testing.T, reach func(t *testing.T, url string) string) {
	t.Helper()
	for _, setting := range serverSettings {
		for _, mode := range driverModes {
			t.Run(setting+" "+mode, func(t *testing.T) {
				t.Parallel()
				db := pgtest.New(t)
				set(db, setting)
				pool := connectAs(t, reach(t, db.URL), mode)
				for name, works := range map[string]func(*pgtest.DB, *pgxpool.Pool){
					"jobs":        func(db *pgtest.DB, pool *pgxpool.Pool) { db.InsertDue(10); cycle(db, jobs.New(pool)) },
					"requests":    operate,
					"submissions": buy,
				} {
					t.Run(name, func(t *testing.T) {
						part := *db
						part.TB = t
						part.Exec(`TRUNCATE video_jobs, video_submissions, read_budget`)
						works(&part, pool)
					})
				}
			})
		}
	}
}

// set changes a default of the database for new connections. The test's own pool
// keeps its connection.
func set(db *pgtest.DB, setting string) {
	db.Helper()
	db.Exec(`CREATE SCHEMA IF NOT EXISTS elsewhere`)
	db.Exec(`ALTER DATABASE ` + pgtest.Value[string](db, `SELECT quote_ident(current_database())`) + ` SET ` + setting)
}

func direct(_ *testing.T, url string) string { return url }

func TestSettings(t *testing.T) {
	t.Parallel()
	eachSetting(t, direct)
}

// operate sends every operator request and checks the times and figures.
func operate(db *pgtest.DB, pool *pgxpool.Pool) {
	db.Helper()
	h := requests.New(pool)
	db.Exec(`INSERT INTO video_jobs (job_id, state, next_poll_at, created_at, failing_since, last_polled_at, finished_at, leased_until) VALUES
	         ('long', 'pending', now() - interval '90 s', now() - interval '50 hours', now() - interval '2 hours', now() - interval '3 hours', NULL, '-infinity'),
	         ('leased', 'pending', now() - interval '80 s', now(), NULL, NULL, NULL, now() + interval '10 minutes'),
	         ('old', 'failed', now(), '2026-03-04 05:06:07.123456+00', NULL, NULL, '2026-03-04 05:06:08.654321+00', '-infinity')`)
	db.Exec(`INSERT INTO video_submissions (idempotency_key, request, state, created_at) VALUES ('order', '{}', 'sending', now() - interval '700 s')`)

	seen, err := h.Inspect(db.Context(), operator.Inspect{JobIDs: []string{"leased", "long", "old"}}, 100)
	if err != nil {
		db.Fatal(err)
	}
	figures := fmt.Sprint(seen.Due, seen.Leased, seen.FailingTotal, seen.LongRunningTotal, seen.SubmissionsTotal, seen.SubmissionsStuck, len(seen.OldestDue), len(seen.Jobs))
	if want := fmt.Sprint(1, 1, 1, 1, 1, 1, 2, 3); figures != want {
		db.Fatalf("due, leased, failing, long-running, submissions, stuck, oldest due, rows = %s, want %s", figures, want)
	}
	leased, long, old := seen.Jobs[0], seen.Jobs[1], seen.Jobs[2]
	for name, c := range map[string]struct {
		got  *time.Time
		want time.Duration // before now
	}{
		"at": {&seen.At, 0}, "next_poll_at": {long.NextPollAt, 90 * time.Second}, "created_at": {long.CreatedAt, 50 * time.Hour},
		"failing_since": {seen.Failing[0].FailingSince, 2 * time.Hour}, "last_polled_at": {seen.Failing[0].LastPolledAt, 3 * time.Hour},
		"leased_until": {leased.LeasedUntil, -10 * time.Minute}, "long-running": {seen.LongRunning[0].CreatedAt, 50 * time.Hour},
		"oldest due, leased": {seen.OldestDue[1].LeasedUntil, -10 * time.Minute},
	} {
		if c.got == nil || (time.Since(*c.got)-c.want).Abs() > time.Minute || c.got.Location() != time.UTC {
			db.Errorf("%s: %v, want %v before now in UTC", name, c.got, c.want)
		}
	}
	for name, c := range map[string]struct{ got, want float64 }{
		"oldest due": {seen.OldestDueSeconds, 90}, "due": {float64(seen.OldestDue[0].DueSeconds), 90},
		"age": {float64(seen.LongRunning[0].AgeSeconds), 50 * 3600}, "submission": {float64(seen.Submissions[0].AgeSeconds), 700},
	} {
		if c.got < c.want || c.got > c.want+60 {
			db.Errorf("%s: %v s, want %v", name, c.got, c.want)
		}
	}
	created := time.Date(2026, 3, 4, 5, 6, 7, 123_456_000, time.UTC)
	if old.CreatedAt == nil || !old.CreatedAt.Equal(created) || old.FinishedAt == nil || old.FinishedAt.Sub(created) != 1_530_865*time.Microsecond {
		db.Errorf("created %v, finished %v, want them to the microsecond", old.CreatedAt, old.FinishedAt)
	}

	after := created.Add(time.Microsecond)
	for _, c := range []struct {
		b    operator.Backfill
		want int
	}{
		{operator.Backfill{States: []string{"failed"}, CreatedAfter: &created, CreatedBefore: &after, DryRun: true}, 1},
		{operator.Backfill{States: []string{"failed"}, CreatedBefore: &created, DryRun: true}, 0},
		{operator.Backfill{States: []string{"failed"}, CreatedAfter: &after, DryRun: true}, 0},
		{operator.Backfill{States: []string{"failed"}, CreatedAfter: &created, CreatedBefore: &after}, 1},
	} {
		if done, err := h.Backfill(db.Context(), c.b, time.Second); err != nil || done.Reopened != c.want || done.Note != "" {
			db.Errorf("%+v: %+v, %v, want %d reopened", c.b, done, err, c.want)
		}
	}
	if done, err := h.Backfill(db.Context(), operator.Backfill{JobIDs: pgtest.Names("new_", 102)}, 90*time.Second); err != nil || done.Registered != 102 {
		db.Errorf("registered %+v, %v", done, err)
	}
	if ahead := db.Number(`SELECT extract(epoch FROM max(next_poll_at) - min(next_poll_at))::integer FROM video_jobs WHERE starts_with(job_id, 'new_')`); ahead != 180 {
		db.Errorf("the last row is due %d s after the first, want 180", ahead)
	}
	stopped, err := h.Stop(db.Context(), operator.Stop{JobIDs: []string{"long", "leased", "nobody's"}})
	if err != nil || stopped.Finished[operator.StateStopped] != 2 || stopped.Unknown != 1 {
		db.Errorf("stopped %+v, %v", stopped, err)
	}
}

// buy takes a submission from its intent to its row.
func buy(db *pgtest.DB, pool *pgxpool.Pool) {
	db.Helper()
	s := submissions.New(pool)
	const request = `{"prompt": "C:\\new Köln's \"q\""}`
	if _, err := s.Open(db.Context(), "order", []byte(request)); err != nil {
		db.Fatal(err)
	}
	db.Exec(`UPDATE video_submissions SET created_at = now() - interval '26 hours'`)
	found, err := s.Open(db.Context(), "order", []byte(request))
	if err != nil || found.New || string(found.Request) != request || (found.Age-26*time.Hour).Abs() > time.Minute {
		db.Errorf("found %+v, %v, want an intent of 26 hours ago", found, err)
	}
	if got, err := s.Accept(db.Context(), "order", "job_bought"); err != nil || got.JobID != "job_bought" || got.JobState != "pending" {
		db.Errorf("accepted %+v, %v", got, err)
	}
}

// A database in another encoding than UTF-8 stores the characters that it has
// unchanged, whatever the connection string says.
func TestSettings_Latin1(t *testing.T) {
	t.Parallel()
	for _, parameters := range []string{"", "&client_encoding=LATIN1", "&Client_Encoding=LATIN1", "&options=-c%20client_encoding%3DLATIN1"} {
		eachEncoding(t, direct, parameters)
	}
}

// eachEncoding runs latin1 in each mode, on a database in LATIN1 whose default
// client_encoding is a third one.
func eachEncoding(t *testing.T, reach func(t *testing.T, url string) string, parameters string) {
	t.Helper()
	for _, mode := range driverModes {
		t.Run(mode+parameters, func(t *testing.T) {
			t.Parallel()
			url := pgtest.Encoded(t, "LATIN1")
			db := &pgtest.DB{TB: t, URL: url, Pool: pgtest.Pool(t, url+"?client_encoding=UTF8")}
			set(db, `client_encoding = 'SQL_ASCII'`)
			latin1(db, connectAs(t, reach(t, url), mode+parameters))
		})
	}
}

// latin1 uses an id and an answer beyond ASCII with every store.
func latin1(db *pgtest.DB, pool *pgxpool.Pool) {
	db.Helper()
	const id, other = "über-1", "über-2"
	h, s := requests.New(pool), jobs.New(pool)
	if done, err := h.Backfill(db.Context(), operator.Backfill{JobIDs: []string{id, other}}, time.Second); err != nil || done.Registered != 2 {
		db.Fatalf("backfill %+v, %v", done, err)
	}
	r := uncounted(2)
	got := claim(db, s, r)
	var found []string
	for _, j := range got.Jobs {
		found = append(found, j.ID)
	}
	if slices.Sort(found); !cmp.Equal(found, []string{id, other}) {
		db.Fatalf("claimed %q", found)
	}
	done := finish(id, r.Lease)
	done.Final, done.Status = []byte(`{"title": "Köln", "escaped": "K\u00f6ln"}`), "completed"
	if o := settle(db, s, done); o[0] != poller.Written {
		db.Errorf("settle: %v", o)
	}
	if n := db.Number(`SELECT count(*) FROM video_jobs WHERE job_id = 'über-1' AND final_status = '{"title": "Köln", "escaped": "Köln"}' AND state = 'completed'`); n != 1 {
		db.Errorf("the answer is not kept as it was: %s", pgtest.Value[string](db, `SELECT string_agg(job_id || ' ' || coalesce(final_status::text, '-'), '; ') FROM video_jobs`))
	}
	seen, err := h.Inspect(db.Context(), operator.Inspect{JobIDs: []string{id, other, "ünknown"}}, 0)
	if err != nil || len(seen.Jobs) != 2 || seen.Jobs[0].JobID != id || !cmp.Equal(seen.Unknown, []string{"ünknown"}) {
		db.Errorf("inspect %+v, %v", seen, err)
	}
	stopped, err := h.Stop(db.Context(), operator.Stop{JobIDs: []string{id, other}})
	if err != nil || stopped.Finished[operator.StateStopped] != 1 || stopped.AlreadyFinished != 1 {
		db.Errorf("stop %+v, %v", stopped, err)
	}
	bought := submissions.New(pool)
	if sub, err := bought.Open(db.Context(), "order-ü", []byte(`{"prompt": "Köln"}`)); err != nil || string(sub.Request) != `{"prompt": "Köln"}` {
		db.Errorf("intent %s, %v", sub.Request, err)
	}
	if sub, err := bought.Accept(db.Context(), "order-ü", "über-3"); err != nil || sub.JobID != "über-3" || sub.JobState != "pending" {
		db.Errorf("accepted %+v, %v", sub, err)
	}
}

// An id that the database cannot hold makes the request invalid.
func TestSettings_Latin1Untranslatable(t *testing.T) {
	t.Parallel()
	url := pgtest.Encoded(t, "LATIN1")
	for _, mode := range driverModes {
		h := requests.New(connectAs(t, url, mode))
		ids := []string{"job_1", "日本"}
		_, backfill := h.Backfill(t.Context(), operator.Backfill{JobIDs: ids}, time.Second)
		_, inspect := h.Inspect(t.Context(), operator.Inspect{JobIDs: ids}, 0)
		_, stop := h.Stop(t.Context(), operator.Stop{JobIDs: ids})
		for err, field := range map[error]string{backfill: "backfill", inspect: "inspect.job_ids", stop: "stop.job_ids"} {
			want := operator.InvalidRequest(field + ": a value holds a character that the database's encoding does not have")
			if !errors.Is(err, want) {
				t.Errorf("%s: error %v, want %v", mode, err, want)
			}
		}
	}
}

// A write to a read-only database fails at once, with the cure.
func TestSettings_ReadOnly(t *testing.T) {
	t.Parallel()
	for _, mode := range driverModes {
		t.Run(mode, func(t *testing.T) {
			t.Parallel()
			db := pgtest.New(t)
			db.InsertDue(1)
			set(db, `default_transaction_read_only = on`)
			pool := connectAs(t, db.URL, mode)
			h := requests.New(pool)
			_, claim := jobs.New(pool).Claim(t.Context(), uncounted(1))
			_, backfill := h.Backfill(t.Context(), operator.Backfill{JobIDs: []string{"new"}}, time.Second)
			_, stop := h.Stop(t.Context(), operator.Stop{JobIDs: []string{"job_1"}})
			const cure = "the database takes no writes here: connect to its writer, not to a replica, and leave default_transaction_read_only off"
			for name, err := range map[string]error{"claim": claim, "backfill": backfill, "stop": stop} {
				if err == nil || !strings.Contains(err.Error(), cure) {
					t.Errorf("%s: error %v, want one with %q", name, err, cure)
				}
			}
			if seen, err := h.Inspect(t.Context(), operator.Inspect{}, 0); err != nil || seen.Due != 1 {
				t.Errorf("inspect %+v, %v", seen, err)
			}
		})
	}
}

// After the server has closed an idle connection, a claim opens a new one.
func TestSettings_IdleSessionTimeout(t *testing.T) {
	t.Parallel()
	for _, mode := range driverModes {
		t.Run(mode, func(t *testing.T) {
			t.Parallel()
			db := pgtest.New(t)
			db.InsertDue(1)
			const hasTimeout = `SELECT current_setting('server_version_num')::integer >= 140000`
			if pgtest.Value[bool](db, hasTimeout) {
				set(db, `idle_session_timeout = '100ms'`)
			}
			pool := connectAs(t, db.URL, mode+"&application_name=idle")
			if !pgtest.Value[bool](db, hasTimeout) {
				db.Exec(`SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = current_database() AND application_name = 'idle'`)
			}
			for db.Number(`SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND application_name = 'idle'`) > 0 {
				if t.Context().Err() != nil {
					t.Fatal(t.Context().Err())
				}
			}
			if got := claim(t, jobs.New(pool), uncounted(1)); len(got.Jobs) != 1 {
				t.Errorf("claimed %d rows, want 1", len(got.Jobs))
			}
		})
	}
}

// Times that JSON cannot represent are shown as null and cause no error.
func TestInspect_TimesBeyondJSON(t *testing.T) {
	t.Parallel()
	for _, at := range []string{"infinity", "-infinity", "11001-01-01", "294276-12-31 23:59:59.999999+00", "0044-03-15 BC", "4713-01-01 BC", "0001-12-31 BC", "9999-12-31 23:59:59.999999+00"} {
		for _, mode := range driverModes {
			t.Run(at+" "+mode, func(t *testing.T) {
				t.Parallel()
				db := pgtest.New(t)
				db.Exec(`INSERT INTO video_jobs (job_id, state, next_poll_at, created_at, failing_since, last_polled_at, finished_at, leased_until)
				         SELECT s, s, t, t, t, t, t, t FROM unnest(ARRAY['pending', 'failed']) AS s, (SELECT $1::timestamptz AS t) AS given`, at)
				db.Exec(`INSERT INTO video_submissions (idempotency_key, request, state, created_at) VALUES ('order', '{}', 'sending', $1::timestamptz)`, at)
				h := requests.New(connectAs(t, db.URL, mode))
				seen, err := h.Inspect(t.Context(), operator.Inspect{JobIDs: []string{"pending", "failed"}}, 0)
				if err != nil {
					t.Fatal(err)
				}
				if _, err := json.Marshal(seen); err != nil {
					t.Fatal(err)
				}
				if len(seen.Jobs) != 2 || len(seen.Failing) != 1 || len(seen.Submissions) != 1 || seen.OldestDueSeconds > 101*366*86400 {
					t.Fatalf("answer %+v", seen)
				}
				for _, j := range seen.Jobs {
					for i, shown := range []*time.Time{j.CreatedAt, j.NextPollAt, j.FailingSince, j.LastPolledAt, j.FinishedAt, j.LeasedUntil, seen.Failing[0].FailingSince, seen.Failing[0].NextPollAt} {
						if shown != nil {
							t.Errorf("%s: time %d is %v, want none", j.JobID, i, shown)
						}
					}
				}
				past := db.Number(`SELECT ($1::timestamptz < now())::integer`, at)
				if len(seen.OldestDue) != past || len(seen.LongRunning) != past || seen.LongRunningTotal != past || seen.Due != past {
					t.Errorf("due %d, %+v; long-running %d, %+v; want %d each", seen.Due, seen.OldestDue, seen.LongRunningTotal, seen.LongRunning, past)
				}
				now := time.Now()
				done, err := h.Backfill(t.Context(), operator.Backfill{States: []string{"failed"}, Overdue: true, CreatedBefore: &now, DryRun: true}, time.Second)
				if err != nil || done.Reopened != past { // the pending row is due already
					t.Errorf("backfill within a window: %+v, %v, want %d", done, err, past)
				}
				if done, err := h.Backfill(t.Context(), operator.Backfill{States: []string{"failed"}, Overdue: true}, time.Second); err != nil || done.Reopened != 2-past {
					t.Errorf("backfill: %+v, %v, want %d", done, err, 2-past)
				}
			})
		}
	}
}
