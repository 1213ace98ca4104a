package main_test

import (
	"bytes"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"sumepoller/internal/cli"
	"sumepoller/internal/operator"
	"sumepoller/internal/pgtest"
	"sumepoller/internal/sume/sumetest"
)

// modes are the query modes of the driver.
var modes = []string{"cache_statement", "exec", "simple_protocol"}

// set changes a default of the stage's database, for new connections.
func (s *stage) set(t *testing.T, settings ...string) {
	t.Helper()
	name := s.column(t, `SELECT quote_ident(current_database())`)[0]
	for _, setting := range settings {
		s.exec(t, `ALTER DATABASE `+name+` SET `+setting)
	}
}

// In the modes without prepared statements the driver gets times as strings, in the
// format of the server's DateStyle.
func TestSettings_Formats(t *testing.T) {
	t.Parallel()
	for _, mode := range modes {
		t.Run(mode, func(t *testing.T) {
			t.Parallel()
			s := newStage(t)
			s.database += "?default_query_exec_mode=" + mode
			s.everyRequest(t)
		})
	}
}

// everyRequest invokes the function with each kind of payload, under unusual formats
// and defaults of the database.
func (s *stage) everyRequest(t *testing.T) {
	t.Helper()
	s.mixed(t)
	s.set(t, `"DateStyle" = 'German, DMY'`, `"IntervalStyle" = 'sql_standard'`, `"TimeZone" = 'Asia/Kolkata'`, `extra_float_digits = -15`,
		`standard_conforming_strings = off`, `default_transaction_isolation = 'repeatable read'`, `bytea_output = 'escape'`)
	b := s.sandbox(t, "POLL_BUDGET=3s")
	seen := askFor[operator.Inspection](t, b, `{"inspect": {"job_ids": ["failing_3"]}}`)
	if j := seen.Jobs[0]; j.CreatedAt.String() != "2026-11-01 03:00:00 +0000 UTC" || j.NextPollAt.Sub(seen.At).Round(1e10).Hours() != 3 {
		t.Errorf("row %+v, want created_at and next_poll_at as written", j)
	}
	const window = `"created_after": "2026-11-01T04:00:00Z", "created_before": "2026-11-01T08:00:00Z"`
	if did := b.backfill(t, `{"backfill": {"states": ["failed"], `+window+`}}`, 0, 4); did.Finished["completed"] != 4 {
		t.Errorf("backfill %+v, want 4 jobs read to their end", did)
	}
	if got := askFor[operator.Stopped](t, b, `{"stop": {"job_ids": ["pending_1", "failing_1"]}}`); got.Finished["stopped"] != 2 {
		t.Errorf("stop %+v", got)
	}
	s.due(t, finishes, "job_1")
	if sum := b.tick(t); sum.Finished["completed"] != 1 || sum.LostLeases > 0 {
		t.Errorf("tick %+v, want the due job completed", sum)
	}
}

// A database in another encoding than UTF-8 stores the characters that it can hold.
func TestSettings_Latin1(t *testing.T) {
	t.Parallel()
	for _, mode := range modes {
		t.Run(mode, func(t *testing.T) {
			t.Parallel()
			url := pgtest.Encoded(t, "LATIN1")
			s := stageOn(t, url)
			s.db = pgtest.Pool(t, url+"?client_encoding=UTF8")
			s.database += "?default_query_exec_mode=" + mode
			s.due(t, finishes, "über-1", "über-2", "job_3")
			s.api.AddJob("über-2", sumetest.Plan{End: sumetest.Never})
			s.api.SetFault("über-1", sumetest.Fault{Body: `{"terminal": true, "sume_status": "completed", "title": "Köln"}`})
			s.api.SetFault("job_3", sumetest.Fault{Body: `{"terminal": true, "sume_status": "completed", "title": "日本"}`})
			b := s.sandbox(t, "POLL_BUDGET=3s")
			b.tick(t)
			if title := s.column(t, `SELECT coalesce(final_status ->> 'title', 'none') FROM video_jobs WHERE job_id = 'über-1'`); !slices.Equal(title, []string{"Köln"}) {
				t.Errorf("title %q, want Köln", title)
			}
			// For other characters the answer is not stored, but the job is finished.
			s.ended(t, map[string]int{"completed": 2, "pending": 1})
			seen := askFor[operator.Inspection](t, b, `{"inspect": {"job_ids": ["über-1", "über-2"]}}`)
			if len(seen.Jobs) != 2 || seen.Jobs[0].State != "completed" || seen.Unknown != nil {
				t.Errorf("inspect %+v, unknown %q", seen.Jobs, seen.Unknown)
			}
			if got := askFor[operator.Stopped](t, b, `{"stop": {"job_ids": ["über-2", "ünknown"]}}`); got.Finished["stopped"] != 1 || got.Unknown != 1 {
				t.Errorf("stop %+v, want one stopped and one unknown", got)
			}
			b.refuses(t, `{"backfill": {"job_ids": ["日本"]}}`, "backfill")
			b.refuses(t, `{"inspect": {"job_ids": ["日本"]}}`, "inspect.job_ids")
			b.refuses(t, `{"stop": {"job_ids": ["日本"]}}`, "stop.job_ids")
		})
	}
}

// A time that JSON cannot express is null in the answer, and make status prints
// never.
func TestInspect_TimesBeyondJSON(t *testing.T) {
	t.Parallel()
	s := newStage(t)
	s.exec(t, `
INSERT INTO video_jobs (job_id, next_poll_at, created_at, failing_since, last_polled_at, finished_at, leased_until, consecutive_errors)
SELECT 'job_' || n, at, at, at, at, at, at, 3
  FROM unnest(ARRAY['11001-01-01', '294276-12-31', '0044-03-15 BC', 'infinity', '-infinity']::timestamptz[]) WITH ORDINALITY AS given (at, n)`)
	s.exec(t, `INSERT INTO video_submissions (idempotency_key, request, state, created_at) VALUES ('order', '{}', 'sending', '-infinity')`)
	for _, mode := range modes {
		u := *s
		u.database += "?default_query_exec_mode=" + mode
		answer := u.sandbox(t).ask(t, `{"inspect": {"job_ids": ["job_1", "job_2", "job_3", "job_4", "job_5"]}}`)
		if answer.Failure != nil {
			t.Fatalf("%s: %v", mode, answer.Failure)
		}
		for _, field := range []string{"created_at", "next_poll_at", "leased_until", "last_polled_at", "finished_at", "failing_since"} {
			if strings.Contains(string(answer.Payload), `"`+field+`":"`) {
				t.Errorf("%s: answer %s, want %s null in every row", mode, answer.Payload, field)
			}
		}
		if n := strings.Count(string(answer.Payload), `"failing_since":null`); n != 10 {
			t.Errorf("%s: %d rows, want five failing and five asked for", mode, n)
		}
		var table bytes.Buffer
		if err := cli.Print(&table, answer.Payload); err != nil || strings.Count(table.String(), "never") < 5 {
			t.Errorf("%s: printed %v\n%s", mode, err, &table)
		}
	}
}

// A row that the table refuses to claim cannot be written, so only inspect shows it.
func TestInspect_RowThatCannotBeClaimed(t *testing.T) {
	t.Parallel()
	s := newStage(t)
	s.due(t, finishes, "job_1")
	s.exec(t, `ALTER TABLE video_jobs ADD CONSTRAINT never CHECK (job_id <> 'job_1') NOT VALID`)
	seen := askFor[operator.Inspection](t, s.sandbox(t), `{"inspect": {}}`)
	if len(seen.OldestDue) != 1 || seen.OldestDue[0].JobID != "job_1" || seen.OldestDue[0].DueSeconds < 60 || seen.FailingTotal != 0 {
		t.Errorf("oldest due %+v, want job_1 due for a minute", seen.OldestDue)
	}
}

// A misspelled state would otherwise look like a backfill that finds no rows.
func TestBackfill_StateWithoutRows(t *testing.T) {
	t.Parallel()
	s := newStage(t)
	s.mixed(t)
	b := s.sandbox(t, "POLL_BUDGET=2s")
	const there = `; states in the table: completed 10, failed 10, not_found 10, stopped 10`
	for _, c := range []struct{ payload, want string }{
		{`"states": ["faild"], "dry_run": true`, `no finished row is in state "faild"` + there},
		{`"states": ["Failed", "expired", "failed"], "dry_run": true`, `no finished row is in state "Failed" or "expired"` + there},
		{`"states": ["failed"], "limit": 1, "dry_run": true`, ""},
		{`"states": ["failed"], "created_before": "2020-01-01T00:00:00Z", "dry_run": true`, ""},
		{`"states": ["stopped", "failed"], "limit": 1, "dry_run": true`, ""},
		{`"overdue": true, "dry_run": true`, ""},
		{`"states": ["faild"]`, `no finished row is in state "faild"` + there},
	} {
		got := b.ran(t, `{"backfill": {`+c.payload+`}}`)
		if diff := cmp.Diff(c.want, got.Note); diff != "" {
			t.Errorf("%s: note (-want +got):\n%s", c.payload, diff)
		}
	}
	if !strings.Contains(b.Log(), `"note":"no finished row is in state \"faild\"`) {
		t.Errorf("no note in the log:\n%s", b.Log())
	}
}
