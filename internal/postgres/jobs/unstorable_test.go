package jobs_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"sumepoller/internal/pgtest"
	"sumepoller/internal/poller"
	"sumepoller/internal/postgres/jobs"
)

func TestSettle_UnstorableAnswer(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ final, kept string }{
		"NUL escaped":            {`{"a": "x\u0000y"}`, `{"a": "x` + "\ufffd" + `y"}`},
		"backslash before u0000": {`{"a": "x\\u0000y"}`, `{"a": "x\\u0000y"}`},
		"high surrogate alone":   {`{"a": "\ud83dx"}`, `{"a": "` + "\ufffd" + `x"}`},
		"low surrogate alone":    {`{"a": "\ude00"}`, `{"a": "` + "\ufffd" + `"}`},
		"a surrogate pair":       {`{"a": "\ud83d\ude00"}`, `{"a": "😀"}`},
		"invalid UTF-8":          {"{\"a\": \"\xff\xfe\"}", `{"a": "` + "\ufffd" + `"}`},
		"a number past numeric":  {`{"a": 1e999999}`, "NULL"},
		"no JSON":                {`<html>`, "NULL"},
		"nested past the stack":  {strings.Repeat("[", 100_000) + strings.Repeat("]", 100_000), "NULL"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			db := pgtest.New(t)
			db.InsertDue(8)
			s := jobs.New(db.Pool)
			r := uncounted(8)
			claim(t, s, r)
			var batch []poller.Settlement
			for i := range 8 {
				batch = append(batch, finish(fmt.Sprintf("job_%d", i+1), r.Lease))
			}
			batch[3].Final = []byte(c.final)
			if got := settle(t, s, batch...); count(got, poller.Written) != 8 {
				t.Errorf("outcomes %v, want all Written", got)
			}
			if got := readRow(db, "job_4").Final; got != c.kept {
				t.Errorf("kept %.80q, want %q", got, c.kept)
			}
			if n := db.Number(`SELECT count(*) FROM video_jobs WHERE state = 'completed' AND final_status IS NOT NULL`); n < 7 {
				t.Errorf("%d rows have their answer, want the seven good ones at least", n)
			}
		})
	}
}

func TestSettle_UnstorableText(t *testing.T) {
	t.Parallel()
	db := pgtest.New(t)
	db.InsertDue(1)
	s := jobs.New(db.Pool)
	r := uncounted(1)
	claim(t, s, r)
	settle(t, s, poller.Settlement{JobID: "job_1", Lease: r.Lease, Delay: time.Minute, Class: poller.HTTP5xx, Error: "http_5xx 500 request_id=\x00\xff"})
	if got := readRow(db, "job_1").LastError; got != "http_5xx 500 request_id=\ufffd\ufffd" {
		t.Errorf("last_error %q", got)
	}
	got := settle(t, s, poller.Settlement{JobID: "no\x00job\xff", Lease: r.Lease, State: "completed"})
	if got[0] != poller.Missing {
		t.Errorf("an id that no row can have: %v, want gone", got)
	}
}

// A trigger of the user's that fails for one row must not cost the batch.
func TestSettle_TriggerRaises(t *testing.T) {
	t.Parallel()
	for _, code := range []string{"P0001", "23514", "22003", "TR001", "21000", "42703", "42P01", "42501", "44000", "0A000", "55000", "54001", "09000", "2F002"} {
		t.Run(code, func(t *testing.T) {
			t.Parallel()
			db := pgtest.New(t)
			db.InsertDue(3)
			db.Exec(`CREATE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RAISE EXCEPTION 'not this one' USING ERRCODE = '` + code + `'; END $$`)
			db.Exec(`CREATE TRIGGER refuse BEFORE UPDATE ON video_jobs FOR EACH ROW
			         WHEN (new.job_id = 'job_2' AND new.state = 'completed') EXECUTE FUNCTION refuse()`)
			s := jobs.New(db.Pool)
			r := uncounted(3)
			claim(t, s, r)
			got := settle(t, s, finish("job_1", r.Lease), finish("job_2", r.Lease), finish("job_3", r.Lease))
			if diff := cmp.Diff([]poller.Outcome{poller.Written, poller.Refused, poller.Written}, got); diff != "" {
				t.Errorf("outcomes (-want +got):\n%s", diff)
			}
			if row := readRow(db, "job_2"); row.State != "pending" || !row.Leased {
				t.Errorf("the refused row: %+v, want it pending under its lease", row)
			}
		})
	}
}

func TestSettle_PartBeforeError(t *testing.T) {
	t.Parallel()
	db := pgtest.New(t)
	db.InsertDue(4)
	db.Exec(`CREATE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
	             IF new.job_id = 'job_2' THEN RAISE check_violation; END IF;
	             RAISE database_dropped; END $$`)
	db.Exec(`CREATE TRIGGER refuse BEFORE UPDATE ON video_jobs FOR EACH ROW
	         WHEN (new.job_id IN ('job_2', 'job_3') AND new.state = 'completed') EXECUTE FUNCTION refuse()`)
	s := jobs.New(db.Pool)
	r := uncounted(4)
	claim(t, s, r)
	var batch []poller.Settlement
	for i := range 4 {
		batch = append(batch, finish(fmt.Sprintf("job_%d", i+1), r.Lease))
	}
	got, err := s.Settle(t.Context(), batch)
	if diff := cmp.Diff([]poller.Outcome{poller.Written, poller.Refused}, outcomes(got)); diff != "" || err == nil {
		t.Errorf("error %v, outcomes (-want +got):\n%s", err, diff)
	}
}

func TestSettle_LargeAnswers(t *testing.T) {
	t.Parallel()
	db := pgtest.New(t)
	db.InsertDue(12)
	s := jobs.New(db.Pool)
	r := uncounted(12)
	claim(t, s, r)
	var batch []poller.Settlement
	for i := range 12 {
		one := finish(fmt.Sprintf("job_%d", i+1), r.Lease)
		one.Final = []byte(`{"a": "` + strings.Repeat("x", 1<<20) + `"}`)
		batch = append(batch, one)
	}
	if got := settle(t, s, batch...); count(got, poller.Written) != 12 {
		t.Errorf("outcomes %v, want all Written", got)
	}
	if n := db.Number(`SELECT count(*) FROM video_jobs WHERE length(final_status ->> 'a') = 1048576`); n != 12 {
		t.Errorf("%d answers kept, want 12", n)
	}
}
