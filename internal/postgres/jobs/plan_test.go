package jobs_test

import (
	"fmt"
	"maps"
	"strconv"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"

	"sumepoller/internal/pgtest"
	"sumepoller/internal/postgres/jobs"
)

func TestPlan_RowsByKey(t *testing.T) {
	t.Parallel()
	const fill = `INSERT INTO video_jobs (job_id, next_poll_at) SELECT 'job_' || g, now() - random() * interval '1 hour' FROM generate_series(1, 20000) AS g`
	const lease = `UPDATE video_jobs SET leased_until = now() + interval '1 minute', lease_id = '11111111111111111111111111111111'`
	array := func(value string) string {
		values := make([]string, 200)
		for i := range values {
			values[i] = strings.ReplaceAll(value, "#", strconv.Itoa(i+1))
		}
		return `'{` + strings.Join(values, ",") + `}'`
	}
	keys := map[string]string{"ids": array("job_#"), "leases": array("11111111111111111111111111111111"), "states": array("pending")}
	with := func(more map[string]string) map[string]string {
		maps.Copy(more, keys)
		return more
	}
	statements := map[string]map[string]string{
		jobs.SettleSQL: with(map[string]string{
			"delays": array("1"), "polled": array("t"), "statuses": array(`""`), "errors": array(`""`), "not_found": array("0"),
			"finals": array(`""`), "refused": array("f"), "announce": `true`, "lock_timeout": `'300ms'`,
		}),
		jobs.ReleaseSQL: with(map[string]string{"unread": array("t"), "day": `'2026-01-01'`, "counted": `true`, "lock_timeout": `'300ms'`}),
		jobs.OutcomeSQL: with(map[string]string{"refused": array("f")}),
	}
	for name, steps := range map[string][]string{
		"never analysed":   {fill, lease},
		"analysed at rest": {fill, `ANALYZE video_jobs`, lease},
		"analysed leased":  {fill, lease, `ANALYZE video_jobs`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			db := pgtest.New(t)
			db.Exec(`ALTER TABLE video_jobs SET (autovacuum_enabled = off)`)
			for _, sql := range steps {
				db.Exec(sql)
			}
			conn := db.Connect()
			n := 0
			for sql, args := range statements {
				n++
				call := prepare(t, conn, fmt.Sprintf("s%d", n), sql, args)
				for _, mode := range []string{"force_custom_plan", "force_generic_plan"} {
					plan := planOf(t, conn, mode, call)
					if strings.Contains(plan, "Seq Scan on video_jobs") || strings.Contains(plan, "video_jobs_due_idx") || !strings.Contains(plan, "video_jobs_pkey") {
						t.Errorf("%s: rows are not found by their keys\n%s", mode, plan)
					}
				}
			}
		})
	}
}

func TestPlan_Schedule(t *testing.T) {
	t.Parallel()
	const fill = `INSERT INTO video_jobs (job_id, state, next_poll_at)
	              SELECT 'job_' || g, CASE WHEN g % 10 = 0 THEN 'pending' ELSE 'completed' END, now() + g * interval '1 second'
	              FROM generate_series(1, 50000) AS g`
	for name, steps := range map[string][]string{
		"never analysed":      {fill},
		"analysed":            {fill, `ANALYZE video_jobs`},
		"analysed leased":     {fill, `UPDATE video_jobs SET leased_until = now() + interval '1 minute'`, `ANALYZE video_jobs`},
		"analysed when empty": {`ANALYZE video_jobs`, fill},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			db := pgtest.New(t)
			db.Exec(`ALTER TABLE video_jobs SET (autovacuum_enabled = off)`)
			for _, sql := range steps {
				db.Exec(sql)
			}
			conn := db.Connect()
			for name, sql := range map[string]string{"next_due": jobs.NextDueSQL, "backlog": jobs.BacklogSQL} {
				args := map[string]string{"longest_lease": "900000000"}
				if sql == jobs.NextDueSQL {
					args["own_leases"], args["excluded"] = "'{}'", "'{}'"
				}
				call := prepare(t, conn, name, sql, args)
				for _, mode := range []string{"force_custom_plan", "force_generic_plan"} {
					if plan := planOf(t, conn, mode, call); strings.Contains(plan, "Seq Scan on video_jobs") || strings.Contains(plan, "Sort") {
						t.Errorf("%s, %s: does not walk the index\n%s", name, mode, plan)
					}
				}
			}
		})
	}
}

// planOf explains a prepared statement without running it.
func planOf(t testing.TB, conn *pgx.Conn, mode, call string) string {
	t.Helper()
	if _, err := conn.Exec(t.Context(), `SET plan_cache_mode = `+mode); err != nil {
		t.Fatal(err)
	}
	rows, err := conn.Query(t.Context(), `EXPLAIN (COSTS OFF) EXECUTE `+call, pgx.QueryExecModeSimpleProtocol)
	if err != nil {
		t.Fatal(err)
	}
	lines, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if err != nil {
		t.Fatal(err)
	}
	return strings.Join(lines, "\n")
}
