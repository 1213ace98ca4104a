package jobs_test

import (
	"context"
	"math"
	"regexp"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"sumepoller/internal/pgtest"
	"sumepoller/internal/poller"
	"sumepoller/internal/postgres/jobs"
)

// meter counts statements.
type meter struct{ statements atomic.Int64 }

func (m *meter) TraceQueryStart(ctx context.Context, _ *pgx.Conn, _ pgx.TraceQueryStartData) context.Context {
	m.statements.Add(1)
	return ctx
}
func (m *meter) TraceQueryEnd(context.Context, *pgx.Conn, pgx.TraceQueryEndData) {}
func (m *meter) TraceBatchStart(ctx context.Context, _ *pgx.Conn, d pgx.TraceBatchStartData) context.Context {
	return ctx
}

func (m *meter) TraceBatchQuery(context.Context, *pgx.Conn, pgx.TraceBatchQueryData) {
	m.statements.Add(1)
}
func (m *meter) TraceBatchEnd(context.Context, *pgx.Conn, pgx.TraceBatchEndData) {}

func TestCost_Statements(t *testing.T) {
	t.Parallel()
	for name, ceiling := range map[string]int{"uncounted": -1, "counted": 100_000} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			db := pgtest.New(t)
			const rows = 640
			db.InsertDue(rows)
			cfg, err := pgxpool.ParseConfig(db.URL)
			if err != nil {
				t.Fatal(err)
			}
			var m meter
			cfg.ConnConfig.Tracer = &m
			pool, err := pgxpool.NewWithConfig(t.Context(), cfg)
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(pool.Close)
			s := jobs.New(pool)
			for range rows / 64 {
				r := counted(64, ceiling)
				var batch []poller.Settlement
				for _, j := range claim(t, s, r).Jobs {
					batch = append(batch, finish(j.ID, r.Lease))
				}
				settle(t, s, batch...)
			}
			if n := float64(m.statements.Load()) / rows; n > 0.1 {
				t.Errorf("%.3f statements a read, want at most 0.1", n)
			} else {
				t.Logf("%.3f statements a read", n)
			}
		})
	}
}

// explained runs a statement under EXPLAIN and returns the bytes of WAL it wrote.
func explained(db *pgtest.DB, conn *pgx.Conn, sql string, args pgx.StrictNamedArgs) int {
	db.Helper()
	rows, err := conn.Query(db.Context(), `EXPLAIN (ANALYZE, WAL, COSTS OFF, TIMING OFF) `+sql,
		pgx.QueryExecModeExec, args)
	if err != nil {
		db.Fatal(err)
	}
	plan, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if err != nil {
		db.Fatal(err)
	}
	// The first line with WAL belongs to the topmost node, which counts all below.
	found := regexp.MustCompile(`WAL: .*bytes=(\d+)`).FindStringSubmatch(strings.Join(plan, "\n"))
	if found == nil {
		db.Fatalf("no WAL in\n%s", strings.Join(plan, "\n"))
	}
	n, err := strconv.Atoi(found[1])
	if err != nil {
		db.Fatal(err)
	}
	return n
}

func TestCost_WAL(t *testing.T) {
	t.Parallel()
	db := pgtest.New(t)
	const rows = 1920
	db.InsertDue(rows)
	db.Exec(`ANALYZE video_jobs`)
	conn := db.Connect()
	least, all := math.MaxInt, 0
	for range rows / 192 {
		r := uncounted(192)
		ids, leases, states := make([]string, 192), make([]string, 192), make([]string, 192)
		statuses, finals := make([]string, 192), make([]string, 192)
		delays, polled, errs := make([]int64, 192), make([]bool, 192), make([]string, 192)
		bytes := explained(db, conn, jobs.ClaimSQL, pgx.StrictNamedArgs{
			"lease": jobs.LeaseText(r.Lease), "lease_for": r.For.Microseconds(), "longest_lease": 900_000_000, "from": nil, "recall": false,
			"only": nil, "excluded": []string{}, "limit": 192, "pace_line": -1, "lock_timeout": "300ms",
		})
		found, err := conn.Query(t.Context(), `SELECT job_id FROM video_jobs WHERE lease_id = $1::text::uuid`, jobs.LeaseText(r.Lease))
		if err != nil {
			t.Fatal(err)
		}
		ids, err = pgx.AppendRows(ids[:0], found, pgx.RowTo[string])
		if err != nil || len(ids) != 192 {
			t.Fatalf("claimed %d: %v", len(ids), err)
		}
		for i, id := range ids {
			leases[i], states[i], statuses[i], polled[i] = jobs.LeaseText(r.Lease), "completed", "completed", true
			finals[i] = `{"data": {"job_id": "` + id + `", "status": "COMPLETED", "sume_status": "completed", "terminal": true, "result_ready": true, ` +
				`"next_action": "fetch_result", "job": {"id": "` + id + `", "type": "video_generation", "status": "completed"}}, "request_id": "req_1"}`
		}
		bytes += explained(db, conn, jobs.SettleSQL, pgx.StrictNamedArgs{
			"ids": ids, "leases": leases, "states": states, "delays": delays, "polled": polled, "statuses": statuses, "errors": errs,
			"not_found": make([]int64, 192), "finals": finals, "refused": make([]bool, 192), "announce": true, "lock_timeout": "300ms",
		})
		least, all = min(least, bytes), all+bytes
	}
	// Page images come on top after a checkpoint, and those come as the load on
	// the server has it: the best batch shows what the design costs.
	t.Logf("%d bytes of WAL a read, %d with what page images came", least/192, all/rows)
	if least/192 > 760 {
		t.Errorf("%d bytes of WAL a read but for page images, want at most 760", least/192)
	}
}
