package main_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/jackc/pgx/v5"

	"sumepoller/internal/devstack"
	"sumepoller/internal/operator"
)

// Not parallel, since it measures times.
func TestBackfill_20000Jobs(t *testing.T) {
	s := newStage(t)
	old := ids("old", 20_000)
	for _, id := range old {
		s.api.AddJob(id, finishes)
	}
	b := s.sandbox(t, "POLL_BUDGET=9s")
	b.tick(t) // warm
	answer := b.askAsync(t, fmt.Sprintf(`{"backfill": {"job_ids": %s, "reads_per_minute": 1200}}`, list(t, old)))
	until(t, "20,000 rows", func() bool { return s.number(t, `SELECT count(*) FROM video_jobs`) == len(old) })
	s.exec(t, `CREATE TABLE planned AS SELECT job_id, next_poll_at FROM video_jobs WHERE state = 'pending' AND next_poll_at > now()`)
	tick := time.NewTicker(100 * time.Millisecond)
	defer tick.Stop()
	for i := range 30 {
		<-tick.C
		id := fmt.Sprintf("live_%d", i)
		s.api.AddJob(id, finishes)
		s.exec(t, `WITH added AS (INSERT INTO video_jobs (job_id, next_poll_at) VALUES ($1, now()) RETURNING job_id, next_poll_at)
			INSERT INTO planned SELECT job_id, next_poll_at FROM added`, id)
	}
	sum := answered(t, answer)
	if sum.Registered != len(old) || sum.Polled != sum.Finished["completed"] || sum.LostLeases > 0 {
		t.Errorf("summary %+v", sum)
	}
	for kind, least := range map[string]int{"live": 30, "old": 50} { // at least so many are settled
		early, late, n := s.lateness(t, kind)
		t.Logf("%d %s jobs settled %v to %v after they were due", n, kind, early, late)
		if n < least || early < 0 {
			t.Errorf("%d %s jobs settled %v to %v after they were due; want %d or more, none early", n, kind, early, late, least)
		}
	}
	// A live job waits for the reads in flight, not for the backfill.
	overtaken := s.number(t, `
SELECT coalesce(max((SELECT count(*)
                       FROM planned o JOIN video_jobs v USING (job_id)
                      WHERE o.next_poll_at > p.next_poll_at AND v.finished_at < j.finished_at)), 0)
  FROM planned p JOIN video_jobs j USING (job_id) WHERE p.job_id LIKE 'live%'`)
	t.Logf("at most %d later ones were settled before a live job", overtaken)
	if overtaken > 64 {
		t.Errorf("%d jobs due later were settled before a live job, want at most the 64 in flight", overtaken)
	}
	// Apart from the last two seconds of the run, all due jobs were read.
	if n := s.number(t, `SELECT count(*) FROM video_jobs WHERE state = 'pending' AND next_poll_at < (SELECT max(finished_at) FROM video_jobs) - interval '2 seconds'`); n > 0 {
		t.Errorf("%d jobs are behind the rate", n)
	}
}

// lateness returns the least and the most time between the planned time of a job of
// this kind and its settling, and the number of settled jobs.
func (s *stage) lateness(t *testing.T, kind string) (least, most time.Duration, n int) {
	t.Helper()
	var lowest, highest float64
	err := s.db.QueryRow(t.Context(), `
SELECT coalesce(min(d.late), -1)::float8, coalesce(max(d.late), -1)::float8, count(*)::int
  FROM (SELECT extract(epoch FROM v.finished_at - p.next_poll_at) AS late
          FROM planned p JOIN video_jobs v USING (job_id)
         WHERE v.state = 'completed' AND p.job_id LIKE $1 || '%') AS d`, kind).Scan(&lowest, &highest, &n)
	if err != nil {
		t.Fatal(err)
	}
	return time.Duration(lowest * 1e9).Round(time.Millisecond), time.Duration(highest * 1e9).Round(time.Millisecond), n
}

func TestBackfill_Concurrent(t *testing.T) {
	t.Parallel()
	s := newStage(t)
	s.mixed(t)
	s.slow(time.Second, 0) // no job finishes before both requests are done
	names := ids("new", 4000)
	for _, id := range names {
		s.api.AddJob(id, finishes)
	}
	payload := fmt.Sprintf(`{"backfill": {"job_ids": %s, "states": ["failed", "stopped"], "overdue": true, "reads_per_minute": 1, "limit": 4015}}`,
		list(t, append(names, "pending_1", "completed_1")))
	want := s.sandbox(t).ran(t, strings.Replace(payload, `{"job_ids"`, `{"dry_run": true, "job_ids"`, 1))
	sandboxes := []*sandbox{s.sandbox(t, "POLL_BUDGET=8s", "POLL_CONCURRENCY=200"), s.sandbox(t, "POLL_BUDGET=8s", "POLL_CONCURRENCY=200")}
	answers := make([]func() (devstack.Result, error), len(sandboxes))
	// Neither can write before both have chosen their rows.
	err := pgx.BeginFunc(t.Context(), s.db, func(tx pgx.Tx) error {
		if _, err := tx.Exec(t.Context(), `LOCK TABLE video_jobs IN SHARE MODE`); err != nil {
			return err
		}
		for i, b := range sandboxes {
			answers[i] = b.askAsync(t, payload)
		}
		until(t, "both to wait", func() bool {
			return s.number(t, `SELECT count(*) FROM pg_locks WHERE NOT granted AND relation = 'video_jobs'::regclass
				AND database = (SELECT oid FROM pg_database WHERE datname = current_database())`) == len(sandboxes)
		})
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	var registered, reopened, polled int
	for _, answer := range answers {
		got := answered(t, answer)
		registered, reopened, polled = registered+got.Registered, reopened+got.Reopened, polled+got.Polled
	}
	if registered != want.Registered || reopened != want.Reopened || reopened == 0 {
		t.Errorf("registered %d, reopened %d; want %d and %d, as a single request", registered, reopened, want.Registered, want.Reopened)
	}
	if polled != 100 || s.api.Stats().Reads != 100 {
		t.Errorf("%d reads came back, the API saw %d; want the first hundred, once each", polled, s.api.Stats().Reads)
	}
	s.neverTogether(t)
	// The due times are those of one backfill, a minute apart.
	const waiting = ` FROM video_jobs WHERE state = 'pending' AND job_id LIKE 'new%'`
	if times, jobs := s.number(t, `SELECT count(DISTINCT next_poll_at)`+waiting), s.number(t, `SELECT count(*)`+waiting); times != jobs || jobs < 3800 {
		t.Errorf("%d due times of %d jobs, want one for each", times, jobs)
	}
}

func TestInspect_100000Rows(t *testing.T) {
	t.Parallel()
	s := newStage(t)
	secret := `{"video_url": "https://cdn.sume.invalid/video.mp4?X-Signature=c2ln", "api_key": "` + plantedKey + `"}`
	s.exec(t, `
INSERT INTO video_jobs (job_id, next_poll_at, failing_since, last_error, final_status, idempotency_key)
SELECT 'job_' || i, now() + (i % 7200 - 3600) * interval '1 second',
       CASE WHEN i % 10 = 0 THEN now() - i * interval '1 millisecond' END,
       CASE WHEN i % 10 = 0 THEN 'network https://cdn.sume.invalid/video.mp4?X-Signature=c2ln' END,
       $1::jsonb, 'hidden-' || i
  FROM generate_series(1, 100000) AS i`, secret)
	s.exec(t, `INSERT INTO video_submissions (idempotency_key, request, state) VALUES ('order-42', $1::json, 'sending')`, secret)
	b := s.sandbox(t)
	for _, payload := range []string{`{"inspect": {}}`, fmt.Sprintf(`{"inspect": {"limit": 2000, "job_ids": %s}}`, list(t, numbered(2000)))} {
		got := b.ask(t, payload)
		t.Logf("took %v", got.Took)
		if got.Failure != nil {
			t.Errorf("%.50s: failure %v", payload, got.Failure)
		}
		for _, word := range []string{"final_status", "video_url", "hidden", "api_key", "://", "X-Signature"} {
			b.wantWithout(t, string(got.Payload), word)
		}
		var seen operator.Inspection
		if err := json.Unmarshal(got.Payload, &seen); err != nil {
			t.Fatal(err)
		}
		if !cmp.Equal(seen.States, map[string]int{"pending": 100_000}) || seen.FailingTotal != 10_000 || seen.SubmissionsTotal != 1 {
			t.Errorf("%.50s: states %v, %d failing, %d submissions", payload, seen.States, seen.FailingTotal, seen.SubmissionsTotal)
		}
	}
}

// numbered returns the first of the ids job_1, job_2, …
func numbered(n int) []string {
	names := make([]string, n)
	for i := range names {
		names[i] = fmt.Sprintf("job_%d", i+1)
	}
	return names
}

// wantWithout fails if the answer contains the word.
func (b *sandbox) wantWithout(t *testing.T, answer, word string) {
	t.Helper()
	if strings.Contains(answer, word) {
		t.Errorf("%q is in the answer: %s", word, excerpt(answer, word))
	}
}
