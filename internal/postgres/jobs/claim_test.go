package jobs_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"sumepoller/internal/pgtest"
	"sumepoller/internal/poller"
	"sumepoller/internal/postgres/jobs"
)

// A join in place of the sub-select can update more rows than the limit.
func TestClaim_LimitInEveryPlan(t *testing.T) {
	t.Parallel()
	for _, off := range [][]string{
		{"hashjoin", "mergejoin", "sort", "material", "memoize"},
		{"hashjoin", "mergejoin", "sort", "material", "memoize", "tidscan"},
		{"nestloop", "hashjoin"},
		{"nestloop", "mergejoin"},
		{"indexscan", "bitmapscan"},
	} {
		t.Run(fmt.Sprint(off), func(t *testing.T) {
			t.Parallel()
			db := pgtest.New(t)
			db.InsertDue(200)
			for _, name := range off {
				if db.Number(`SELECT count(*) FROM pg_settings WHERE name = 'enable_' || $1::text`, name) == 0 {
					continue // a newer server's
				}
				db.Exec(`ALTER ROLE CURRENT_USER IN DATABASE ` + db.Pool.Config().ConnConfig.Database + ` SET enable_` + name + ` = off`)
			}
			pool := pgtest.Pool(t, db.URL) // a new connection has the settings
			got := claim(t, jobs.New(pool), uncounted(5))
			if diff := cmp.Diff([]string{"job_200", "job_199", "job_198", "job_197", "job_196"}, ids(got.Jobs)); diff != "" {
				t.Errorf("claimed (-want +got):\n%s", diff)
			}
			if n := db.Number(`SELECT count(*) FROM video_jobs WHERE leased_until > now()`); n != 5 {
				t.Errorf("%d rows are leased, want 5", n)
			}
		})
	}
}

func TestClaim_Claimable(t *testing.T) {
	t.Parallel()
	db := pgtest.New(t)
	for _, id := range []string{"due", "leased", "run_out", "clock_jumped", "finished", "minus_infinity"} {
		db.Insert(id, time.Minute)
	}
	db.Insert("in_a_minute", -time.Minute)
	db.Exec(`UPDATE video_jobs SET leased_until = now() + interval '10 minutes', lease_id = gen_random_uuid() WHERE job_id = 'leased'`)
	db.Exec(`UPDATE video_jobs SET leased_until = now() - interval '1 second', lease_id = gen_random_uuid() WHERE job_id = 'run_out'`)
	db.Exec(`UPDATE video_jobs SET leased_until = now() + interval '16 minutes', lease_id = gen_random_uuid() WHERE job_id = 'clock_jumped'`)
	db.Exec(`UPDATE video_jobs SET state = 'completed' WHERE job_id = 'finished'`)
	db.Exec(`UPDATE video_jobs SET next_poll_at = '-infinity' WHERE job_id = 'minus_infinity'`)
	got := ids(claim(t, jobs.New(db.Pool), uncounted(64)).Jobs)
	slices.Sort(got)
	if diff := cmp.Diff([]string{"clock_jumped", "due", "minus_infinity", "run_out"}, got); diff != "" {
		t.Errorf("claimed (-want +got):\n%s\nof %s", diff, pgtest.Value[string](db, `
			SELECT string_agg(format('%s %s: due in %s, leased for %s by %s, xmin %s, xmax %s, now %s',
			                         ctid, job_id, next_poll_at - now(), nullif(leased_until, '-infinity') - now(), lease_id, xmin, xmax, now()), E'\n')
			FROM video_jobs WHERE next_poll_at > '-infinity'`))
	}
}

func TestClaim_Job(t *testing.T) {
	t.Parallel()
	db := pgtest.New(t)
	db.Insert("old", time.Hour)
	db.Exec(`UPDATE video_jobs SET sume_status = 'processing', consecutive_errors = 3, failing_since = now() - interval '2 hours',
	         not_found_answers = 2, polls = 9, created_at = now() - interval '3 hours'`)
	db.Insert("new", time.Minute)
	got := claim(t, jobs.New(db.Pool), uncounted(2))
	for i := range got.Jobs {
		got.Jobs[i].Late = got.Jobs[i].Late.Round(time.Minute)
		got.Jobs[i].Failing = got.Jobs[i].Failing.Round(time.Minute)
		got.Jobs[i].Age = got.Jobs[i].Age.Round(time.Minute)
	}
	jobs := []poller.Job{
		{ID: "old", Late: time.Hour, Answered: true, ConsecutiveErrors: 3, Failing: 2 * time.Hour, NotFound: 2, Polls: 9, Age: 3 * time.Hour},
		{ID: "new", Late: time.Minute},
	}
	if diff := cmp.Diff(jobs, got.Jobs); diff != "" {
		t.Errorf("jobs (-want +got):\n%s", diff)
	}
}

func TestClaim_AskedAgain(t *testing.T) {
	t.Parallel()
	for name, r := range map[string]poller.ClaimRequest{
		"reads not counted": uncounted(10),
		"quota used up":     counted(10, 10),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			db := pgtest.New(t)
			db.InsertDue(50)
			s := jobs.New(db.Pool)
			first := claim(t, s, r)
			db.Insert("older", time.Hour) // came meanwhile
			again := claim(t, s, r)
			if diff := cmp.Diff(ids(first.Jobs), ids(again.Jobs)); diff != "" {
				t.Errorf("asked again (-first +again):\n%s", diff)
			}
			if first.Day.Reads != again.Day.Reads {
				t.Errorf("reads: %d, asked again %d, want the same", first.Day.Reads, again.Day.Reads)
			}
			if n := db.Number(`SELECT count(*) FROM video_jobs WHERE leased_until > '-infinity'`); n != 10 {
				t.Errorf("%d rows leased, want 10", n)
			}
			if n := db.Number(`SELECT max(lost_leases) FROM video_jobs`); n != 0 {
				t.Errorf("%d leases counted as lost, want none", n)
			}
		})
	}
}

// A row that kills its run must not take a lease every 30 seconds.
func TestClaim_LeaseLength(t *testing.T) {
	t.Parallel()
	db := pgtest.New(t)
	db.Insert("killer", time.Minute)
	s := jobs.New(db.Pool)
	for lost, lease := range []time.Duration{30 * time.Second, 2 * time.Minute, 8 * time.Minute, 15 * time.Minute, 15 * time.Minute} {
		got := claim(t, s, uncounted(1))
		if len(got.Jobs) != 1 || got.Jobs[0].LostLeases != lost {
			t.Fatalf("claim %d: %+v, want the row with %d leases lost", lost, got.Jobs, lost)
		}
		const left = `SELECT extract(epoch FROM leased_until - now())::double precision FROM video_jobs`
		if s := pgtest.Value[float64](db, left); s > lease.Seconds() || s < lease.Seconds()-20 {
			t.Errorf("after %d lost leases the next lasts %v s, want %v", lost, s, lease)
		}
		db.Exec(`UPDATE video_jobs SET leased_until = now() - interval '1 second'`)
	}
	long := uncounted(1)
	long.For = 20 * time.Minute
	claim(t, s, long)
	if m := db.Number(`SELECT round(extract(epoch FROM leased_until - now()) / 60)::integer FROM video_jobs`); m != 20 {
		t.Errorf("a lease of 20 minutes lasts %d", m)
	}
}

func TestClaim_NoLostLease(t *testing.T) {
	t.Parallel()
	db := pgtest.New(t)
	db.InsertDue(2)
	s := jobs.New(db.Pool)
	r := uncounted(2)
	claim(t, s, r)
	settle(t, s, reschedule("job_1", r.Lease, 0))
	release(t, s, "", poller.Release{JobID: "job_2", Lease: r.Lease})
	for _, job := range claim(t, s, uncounted(2)).Jobs {
		if job.LostLeases != 0 {
			t.Errorf("%s: %d leases lost, want none", job.ID, job.LostLeases)
		}
	}
}

// Concurrent claims get different rows.
func TestClaim_Concurrent(t *testing.T) {
	t.Parallel()
	db := pgtest.New(t)
	db.InsertDue(600)
	got := make(chan []string)
	for range 6 {
		go func() {
			s, all := jobs.New(db.Pool), []string{}
			for {
				c, err := s.Claim(t.Context(), uncounted(16))
				if err != nil {
					t.Error(err)
				}
				if len(c.Jobs) == 0 {
					got <- all
					return
				}
				all = append(all, ids(c.Jobs)...)
			}
		}()
	}
	seen := map[string]int{}
	for range 6 {
		for _, id := range <-got {
			seen[id]++
		}
	}
	for id, n := range seen {
		if n != 1 {
			t.Errorf("%s was claimed %d times", id, n)
		}
	}
	if len(seen) != 600 {
		t.Errorf("%d rows claimed, want 600", len(seen))
	}
}
