package jobs_test

import (
	"fmt"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/jackc/pgx/v5"

	"sumepoller/internal/pgtest"
	"sumepoller/internal/poller"
	"sumepoller/internal/postgres/jobs"
)

// explain runs a claim of 64 rows under EXPLAIN, in a transaction that is rolled
// back, and returns the plan and the buffers touched.
func explain(db *pgtest.DB, generic bool, from string, paceLine int) string {
	db.Helper()
	conn := db.Connect()
	exec := func(sql string) {
		db.Helper()
		if _, err := conn.Exec(db.Context(), sql); err != nil {
			db.Fatal(err)
		}
	}
	call := prepare(db, conn, "claim", jobs.ClaimSQL, map[string]string{
		"lease": `'11111111111111111111111111111111'`, "lease_for": "30000000", "longest_lease": "900000000", "from": from, "recall": "false",
		"only": "NULL", "excluded": "'{}'", "limit": "64", "pace_line": strconv.Itoa(paceLine), "lock_timeout": "'300ms'",
	})
	if generic {
		exec(`SET plan_cache_mode = force_generic_plan`)
	}
	exec(`BEGIN`)
	rows, err := conn.Query(db.Context(), `EXPLAIN (ANALYZE, BUFFERS, COSTS OFF, TIMING OFF) EXECUTE `+call, pgx.QueryExecModeSimpleProtocol)
	if err != nil {
		db.Fatal(err)
	}
	lines, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if err != nil {
		db.Fatal(err)
	}
	exec(`ROLLBACK`)
	return strings.Join(lines, "\n")
}

func TestPlan_Claim(t *testing.T) {
	t.Parallel()
	const fill = `INSERT INTO video_jobs (job_id, next_poll_at)
	              SELECT 'new_' || g, now() - random() * interval '1 hour' FROM generate_series(1, 30000) AS g`
	for name, steps := range map[string][]string{
		"never analysed":             {fill},
		"analysed when empty":        {`ANALYZE video_jobs`, fill},
		"analysed":                   {fill, `ANALYZE video_jobs`},
		"analysed with all finished": {fill, `UPDATE video_jobs SET state = 'completed', job_id = 'old_' || job_id`, `ANALYZE video_jobs`, fill},
		"analysed with all leased": {
			fill, `UPDATE video_jobs SET leased_until = now() + interval '1 minute'`, `ANALYZE video_jobs`,
			`UPDATE video_jobs SET leased_until = '-infinity'`,
		},
		"analysed with all due later": {
			fill, `UPDATE video_jobs SET next_poll_at = now() + interval '1 hour'`, `ANALYZE video_jobs`,
			`UPDATE video_jobs SET next_poll_at = now() - interval '1 hour'`,
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			db := pgtest.New(t)
			db.Exec(`ALTER TABLE video_jobs SET (autovacuum_enabled = off)`)
			for _, sql := range steps {
				db.Exec(sql)
			}
			for _, generic := range []bool{false, true} {
				for _, from := range []string{"NULL", "1767225600000000"} {
					for _, paceLine := range []int{-1, 1000} {
						plan := explain(db, generic, from, paceLine)
						for _, part := range []string{"Index Scan using video_jobs_due_idx", "Tid Scan on video_jobs"} {
							if !strings.Contains(plan, part) {
								t.Errorf("generic %v, from %s, paceLine %d: no %q in\n%s", generic, from, paceLine, part, plan)
							}
						}
						if strings.Contains(plan, "Sort") {
							t.Errorf("generic %v, from %s, paceLine %d: sorts\n%s", generic, from, paceLine, plan)
						}
					}
				}
			}
		})
	}
}

// Rows that come to lie below the bound are found by the next sweep.
func TestSweep_RowsBelowBound(t *testing.T) {
	t.Parallel()
	for name, hide := range map[string]string{
		"inserted in the past": `INSERT INTO video_jobs (job_id, next_poll_at) VALUES ('hidden', now() - interval '1 day')`,
		"reopened":             `UPDATE video_jobs SET state = 'pending', job_id = 'hidden' WHERE job_id = 'finished'`,
		"released by another":  `UPDATE video_jobs SET leased_until = '-infinity', job_id = 'hidden' WHERE job_id = 'leased'`,
		"its lease run out":    `UPDATE video_jobs SET leased_until = now() - interval '1 second', job_id = 'hidden' WHERE job_id = 'leased'`,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			db := pgtest.New(t)
			db.InsertDue(40)
			db.Insert("finished", time.Hour)
			db.Insert("leased", time.Hour)
			db.Exec(`UPDATE video_jobs SET state = 'completed' WHERE job_id = 'finished'`)
			db.Exec(`UPDATE video_jobs SET leased_until = now() + interval '1 minute', lease_id = gen_random_uuid() WHERE job_id = 'leased'`)
			s := jobs.New(db.Pool)
			claim(t, s, uncounted(4)) // sweeps, and sets the bound
			s.SweepIn(time.Hour)
			db.Exec(hide)
			if got := ids(claim(t, s, uncounted(4)).Jobs); cmp.Diff([]string{"job_36", "job_35", "job_34", "job_33"}, got) != "" {
				t.Errorf("below the bound: claimed %v, want the next four above it", got)
			}
			s.SweepIn(0)
			if got := ids(claim(t, s, uncounted(4)).Jobs); cmp.Diff([]string{"hidden", "job_32", "job_31", "job_30"}, got) != "" {
				t.Errorf("sweep: claimed %v, want the hidden row first", got)
			}
		})
	}
}

func TestSweep_AfterShortClaim(t *testing.T) {
	t.Parallel()
	db := pgtest.New(t)
	db.InsertDue(6)
	s := jobs.New(db.Pool)
	claim(t, s, uncounted(4))
	s.SweepIn(time.Hour)
	db.Insert("hidden", time.Hour)
	if got := ids(claim(t, s, uncounted(4)).Jobs); cmp.Diff([]string{"job_2", "job_1"}, got) != "" {
		t.Errorf("claimed %v, want the two left above the bound", got)
	}
	if got := ids(claim(t, s, uncounted(4)).Jobs); cmp.Diff([]string{"hidden"}, got) != "" {
		t.Errorf("claimed %v, want the hidden row", got)
	}
}

func TestSweep_NothingAboveBound(t *testing.T) {
	t.Parallel()
	for name, reset := range map[string]func(s *jobs.Store, r poller.ClaimRequest){
		"by itself":     func(*jobs.Store, poller.ClaimRequest) {},
		"after a reset": func(s *jobs.Store, _ poller.ClaimRequest) { s.Reset() },
		"after a release too": func(s *jobs.Store, r poller.ClaimRequest) {
			release(t, s, "", poller.Release{JobID: "x", Lease: r.Lease})
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			db := pgtest.New(t)
			db.InsertDue(4)
			s := jobs.New(db.Pool)
			r := uncounted(4)
			claim(t, s, r)
			s.SweepIn(time.Hour)
			db.Insert("hidden", time.Hour)
			reset(s, r)
			if got := ids(claim(t, s, uncounted(4)).Jobs); cmp.Diff([]string{"hidden"}, got) != "" {
				t.Errorf("claimed %v, want the hidden row", got)
			}
		})
	}
}

// A bound that went past many rows goes back to them, not only to the first.
func TestSweep_MovesBoundBack(t *testing.T) {
	t.Parallel()
	db := pgtest.New(t)
	db.InsertDue(20)
	s := jobs.New(db.Pool)
	claim(t, s, uncounted(4))
	for i := range 9 {
		db.Insert(fmt.Sprint("hidden_", i), time.Hour-time.Duration(i)*time.Second)
	}
	s.SweepIn(0)
	var got []string
	for range 3 {
		got = append(got, ids(claim(t, s, uncounted(4)).Jobs)...)
	}
	for i, id := range got[:9] {
		if id != fmt.Sprint("hidden_", i) {
			t.Fatalf("claimed %v, want the hidden rows before all others", got)
		}
	}
}
