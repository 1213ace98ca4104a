package postgres_test

import (
	"context"
	"crypto/rand"
	"fmt"
	"net"
	"strconv"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"sumepoller/internal/pgtest"
	"sumepoller/internal/poller"
	"sumepoller/internal/postgres"
)

// table is one test's database.
type table struct {
	testing.TB
	url  string
	pool *pgxpool.Pool
}

func newTable(t testing.TB) table {
	t.Helper()
	url := pgtest.URL(t)
	return table{TB: t, url: url, pool: pgtest.Pool(t, url)}
}

func (t table) exec(sql string, args ...any) {
	t.Helper()
	if _, err := t.pool.Exec(t.Context(), sql, args...); err != nil {
		t.Fatalf("%s: %v", sql, err)
	}
}

// due inserts n rows job_1 … job_n, a second apart, job_n the oldest.
func (t table) due(n int) {
	t.Helper()
	t.exec(`INSERT INTO video_jobs (job_id, next_poll_at)
	        SELECT 'job_' || g, now() - g * interval '1 second' FROM generate_series(1, $1::integer) AS g`, n)
}

// job inserts one row that has been due for so long; negative: that is due later.
func (t table) job(id string, late time.Duration) {
	t.Helper()
	t.exec(`INSERT INTO video_jobs (job_id, next_poll_at) VALUES ($1, now() - $2::bigint * interval '1 microsecond')`, id, late.Microseconds())
}

// number asks a question whose answer is one number.
func (t table) number(sql string, args ...any) int {
	t.Helper()
	return ask[int](t, sql, args...)
}

func ask[T any](t table, sql string, args ...any) T {
	t.Helper()
	rows, err := t.pool.Query(t.Context(), sql, args...)
	if err != nil {
		t.Fatalf("%s: %v", sql, err)
	}
	got, err := pgx.CollectExactlyOneRow(rows, pgx.RowTo[T])
	if err != nil {
		t.Fatalf("%s: %v", sql, err)
	}
	return got
}

func newLease() (id poller.LeaseID) {
	_, _ = rand.Read(id[:])
	return id
}

// want is a claim of n rows that counts no reads.
func want(n int) poller.ClaimRequest {
	return poller.ClaimRequest{Lease: newLease(), Limit: n, For: 30 * time.Second, PaceLine: -1}
}

// counting is a claim of n rows under a day's ceiling.
func counting(n, ceiling int) poller.ClaimRequest {
	r := want(n)
	r.PaceLine = ceiling
	return r
}

func claim(t testing.TB, s *postgres.Store, r poller.ClaimRequest) poller.Claimed {
	t.Helper()
	got, err := s.Claim(t.Context(), r)
	if err != nil {
		t.Fatal(err)
	}
	return got
}

func settle(t testing.TB, s *postgres.Store, batch ...poller.Settlement) []poller.Outcome {
	t.Helper()
	got, err := s.Settle(t.Context(), batch)
	if err != nil {
		t.Fatal(err)
	}
	return outcomes(got)
}

func outcomes(results []poller.Result) []poller.Outcome {
	got := make([]poller.Outcome, len(results))
	for i, r := range results {
		got[i] = r.Outcome
	}
	return got
}

func release(t testing.TB, s *postgres.Store, date string, rows ...poller.Release) []poller.Outcome {
	t.Helper()
	got, err := s.Release(t.Context(), date, rows)
	if err != nil {
		t.Fatal(err)
	}
	return outcomes(got)
}

func ids(jobs []poller.Job) []string {
	got := make([]string, 0, len(jobs))
	for _, j := range jobs {
		got = append(got, j.ID)
	}
	return got
}

// finishing settles a job as completed with a small answer.
func finishing(id string, lease poller.LeaseID) poller.Settlement {
	return poller.Settlement{
		JobID: id, Lease: lease, State: "completed", Polled: true, Status: "completed", Delay: time.Minute,
		Final: fmt.Appendf(nil, `{"terminal": true, "sume_status": "completed", "job_id": %q}`, id),
	}
}

// later reschedules a job.
func later(id string, lease poller.LeaseID, in time.Duration) poller.Settlement {
	return poller.Settlement{JobID: id, Lease: lease, Delay: in, Polled: true, Status: "processing"}
}

// session opens a connection of its own, closed at the test's end.
func (t table) session() *pgx.Conn {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), t.url)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close(context.WithoutCancel(t.Context())) })
	return conn
}

// hold locks a row in a transaction that stays open until the returned function
// is called, or the test ends.
func (t table) hold(id string) (letGo func()) {
	t.Helper()
	conn := t.session()
	tx, err := conn.Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := tx.Exec(t.Context(), `SELECT job_id FROM video_jobs WHERE job_id = $1 FOR UPDATE`, id); err != nil {
		t.Fatal(err)
	}
	return func() {
		if err := tx.Rollback(t.Context()); err != nil {
			t.Error(err)
		}
	}
}

// portOf returns the port of an address.
func portOf(t testing.TB, address string) int {
	t.Helper()
	_, text, err := net.SplitHostPort(address)
	if err != nil {
		t.Fatal(err)
	}
	port, err := strconv.Atoi(text)
	if err != nil {
		t.Fatal(err)
	}
	return port
}
