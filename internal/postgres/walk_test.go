package postgres_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/jackc/pgx/v5"

	"sumepoller/internal/poller"
	"sumepoller/internal/postgres"
)

// explain runs a claim of 64 rows under EXPLAIN, in a transaction that is rolled
// back, and returns the plan and the buffers touched.
func (t table) explain(generic bool, from string, ceiling int) string {
	t.Helper()
	conn := t.session()
	exec := func(sql string) {
		t.Helper()
		if _, err := conn.Exec(t.Context(), sql); err != nil {
			t.Fatal(err)
		}
	}
	exec(`PREPARE claim (text, bigint, boolean, bigint, bigint, bigint, text[], text[]) AS ` + postgres.ClaimSQL)
	if generic {
		exec(`SET plan_cache_mode = force_generic_plan`)
	}
	exec(`BEGIN`)
	rows, err := conn.Query(t.Context(), fmt.Sprintf(
		`EXPLAIN (ANALYZE, BUFFERS, COSTS OFF, TIMING OFF) EXECUTE claim ('11111111111111111111111111111111', %s, false, 30000000, 64, %d, NULL, '{}')`, from, ceiling),
		pgx.QueryExecModeSimpleProtocol)
	if err != nil {
		t.Fatal(err)
	}
	lines, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if err != nil {
		t.Fatal(err)
	}
	exec(`ROLLBACK`)
	return strings.Join(lines, "\n")
}

func TestClaimWalksTheDueIndexInOrderWhateverTheStatisticsSay(t *testing.T) {
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
			db := newTable(t)
			db.exec(`ALTER TABLE video_jobs SET (autovacuum_enabled = off)`)
			for _, sql := range steps {
				db.exec(sql)
			}
			for _, generic := range []bool{false, true} {
				for _, from := range []string{"NULL", "1767225600000000"} {
					for _, ceiling := range []int{-1, 1000} {
						plan := db.explain(generic, from, ceiling)
						for _, part := range []string{"Index Scan using video_jobs_due_idx", "Tid Scan on video_jobs"} {
							if !strings.Contains(plan, part) {
								t.Errorf("generic %v, from %s, ceiling %d: no %q in\n%s", generic, from, ceiling, part, plan)
							}
						}
						if strings.Contains(plan, "Sort") {
							t.Errorf("generic %v, from %s, ceiling %d: sorts\n%s", generic, from, ceiling, plan)
						}
					}
				}
			}
		})
	}
}

// Rows that come to lie below the bound are found by the next sweep.
func TestNoRowHidesBelowTheBound(t *testing.T) {
	t.Parallel()
	for name, hide := range map[string]string{
		"inserted in the past": `INSERT INTO video_jobs (job_id, next_poll_at) VALUES ('hidden', now() - interval '1 day')`,
		"reopened":             `UPDATE video_jobs SET state = 'pending', job_id = 'hidden' WHERE job_id = 'finished'`,
		"released by another":  `UPDATE video_jobs SET leased_until = '-infinity', job_id = 'hidden' WHERE job_id = 'leased'`,
		"its lease run out":    `UPDATE video_jobs SET leased_until = now() - interval '1 second', job_id = 'hidden' WHERE job_id = 'leased'`,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			db := newTable(t)
			db.due(40)
			db.job("finished", time.Hour)
			db.job("leased", time.Hour)
			db.exec(`UPDATE video_jobs SET state = 'completed' WHERE job_id = 'finished'`)
			db.exec(`UPDATE video_jobs SET leased_until = now() + interval '1 minute', lease_id = gen_random_uuid() WHERE job_id = 'leased'`)
			s := postgres.NewStore(db.pool)
			claim(t, s, want(4)) // sweeps, and sets the bound
			s.SweepIn(time.Hour)
			db.exec(hide)
			if got := ids(claim(t, s, want(4)).Jobs); cmp.Diff([]string{"job_36", "job_35", "job_34", "job_33"}, got) != "" {
				t.Errorf("below the bound: claimed %v, want the next four above it", got)
			}
			s.SweepIn(0)
			if got := ids(claim(t, s, want(4)).Jobs); cmp.Diff([]string{"hidden", "job_32", "job_31", "job_30"}, got) != "" {
				t.Errorf("sweep: claimed %v, want the hidden row first", got)
			}
		})
	}
}

func TestAClaimThatComesUpShortIsFollowedByASweep(t *testing.T) {
	t.Parallel()
	db := newTable(t)
	db.due(6)
	s := postgres.NewStore(db.pool)
	claim(t, s, want(4))
	s.SweepIn(time.Hour)
	db.job("hidden", time.Hour)
	if got := ids(claim(t, s, want(4)).Jobs); cmp.Diff([]string{"job_2", "job_1"}, got) != "" {
		t.Errorf("claimed %v, want the two left above the bound", got)
	}
	if got := ids(claim(t, s, want(4)).Jobs); cmp.Diff([]string{"hidden"}, got) != "" {
		t.Errorf("claimed %v, want the hidden row", got)
	}
}

func TestAClaimThatFindsNothingAboveTheBoundSweepsAtOnce(t *testing.T) {
	t.Parallel()
	for name, reset := range map[string]func(s *postgres.Store, r poller.ClaimRequest){
		"by itself":     func(*postgres.Store, poller.ClaimRequest) {},
		"after a reset": func(s *postgres.Store, _ poller.ClaimRequest) { s.Reset() },
		"after a release too": func(s *postgres.Store, r poller.ClaimRequest) {
			release(t, s, "", poller.Release{JobID: "x", Lease: r.Lease})
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			db := newTable(t)
			db.due(4)
			s := postgres.NewStore(db.pool)
			r := want(4)
			claim(t, s, r)
			s.SweepIn(time.Hour)
			db.job("hidden", time.Hour)
			reset(s, r)
			if got := ids(claim(t, s, want(4)).Jobs); cmp.Diff([]string{"hidden"}, got) != "" {
				t.Errorf("claimed %v, want the hidden row", got)
			}
		})
	}
}

// A bound that went past many rows goes back to them, not only to the first.
func TestAFullSweepMovesTheBoundBack(t *testing.T) {
	t.Parallel()
	db := newTable(t)
	db.due(20)
	s := postgres.NewStore(db.pool)
	claim(t, s, want(4))
	for i := range 9 {
		db.job(fmt.Sprint("hidden_", i), time.Hour-time.Duration(i)*time.Second)
	}
	s.SweepIn(0)
	var got []string
	for range 3 {
		got = append(got, ids(claim(t, s, want(4)).Jobs)...)
	}
	for i, id := range got[:9] {
		if id != fmt.Sprint("hidden_", i) {
			t.Fatalf("claimed %v, want the hidden rows before all others", got)
		}
	}
}
