package load_test

import (
	"context"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"sumepoller/internal/bench/load"
	"sumepoller/internal/pgtest"
	"sumepoller/internal/sume/sumetest"
)

// stage is a database and an API that finishes every job at its first read.
type stage struct {
	url, api string
	pool     *pgxpool.Pool
	stats    func() sumetest.Stats
}

func newStage(t *testing.T, latency time.Duration) stage {
	t.Helper()
	api := sumetest.New(sumetest.Options{Latency: latency, Unknown: &sumetest.Plan{}})
	server, err := sumetest.Listen(api)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(server.Close)
	url := pgtest.URL(t)
	return stage{url: url, api: server.URL, pool: pgtest.Pool(t, url), stats: api.Stats}
}

func (s stage) exec(t *testing.T, sql string, args ...any) {
	t.Helper()
	if _, err := s.pool.Exec(t.Context(), sql, args...); err != nil {
		t.Fatal(err)
	}
}

// due inserts jobs job_1 … that are due.
func (s stage) due(t *testing.T, n int) {
	t.Helper()
	s.exec(t, `INSERT INTO video_jobs (job_id, next_poll_at)
	           SELECT 'job_' || g, now() - g * interval '1 millisecond' FROM generate_series(1, $1::integer) AS g`, n)
}

func (s stage) spec(kind string, jobs int) load.Spec {
	return load.Spec{
		Kind: kind, DatabaseURL: s.url, APIURL: s.api, Concurrency: 32, Conns: 4, Jobs: jobs, Budget: 20 * time.Second,
	}
}

// once wants each of so many jobs read, and none twice.
func (s stage) once(t *testing.T, jobs int) {
	t.Helper()
	stats := s.stats()
	if len(stats.Jobs) != jobs || stats.Reads != jobs || stats.Overlapping > 0 {
		t.Errorf("%d reads of %d jobs, %d of them beside another of the same job; want each of %d jobs read once",
			stats.Reads, len(stats.Jobs), stats.Overlapping, jobs)
	}
}

func TestEveryLoadReadsEachJobOnce(t *testing.T) {
	t.Parallel()
	for _, kind := range []string{load.Ours, load.Held, load.Bare} {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			const jobs = 50
			s := newStage(t, 0)
			s.due(t, jobs)
			r, err := load.Run(t.Context(), s.spec(kind, jobs))
			if err != nil || r.Reads != jobs || r.Elapsed() <= 0 || r.PeakRSS <= 0 {
				t.Fatalf("result %+v, error %v", r, err)
			}
			s.once(t, jobs)
		})
	}
}

func TestEightSandboxesReadNoJobTwice(t *testing.T) {
	t.Parallel()
	const jobs, sandboxes = 2000, 8
	s := newStage(t, 5*time.Millisecond)
	s.due(t, jobs)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	var left atomic.Int64
	left.Store(jobs)
	finished := s.listen(t, func() {
		if left.Add(-1) == 0 {
			cancel() // a run would wait for leases of others that might run out
		}
	})
	defer finished()
	var all sync.WaitGroup
	for range sandboxes {
		all.Go(func() {
			if _, err := load.Run(ctx, s.spec(load.Ours, 0)); err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
	if n := left.Load(); n > 0 {
		t.Errorf("%d of %d jobs were not announced", n, jobs)
	}
	s.once(t, jobs)
}

// listen calls done for each job that is announced, until it is ended.
func (s stage) listen(t *testing.T, done func()) (end func()) {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), s.url)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := conn.Exec(t.Context(), `LISTEN video_jobs_finished`); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	var listening sync.WaitGroup
	listening.Go(func() {
		for {
			if _, err := conn.WaitForNotification(ctx); err != nil {
				return
			}
			done()
		}
	})
	return func() {
		cancel()
		listening.Wait()
		_ = conn.Close(context.WithoutCancel(ctx))
	}
}

// Not beside the others, which use the processors up.
func TestRowsThatBecomeDueDuringARunAreReadInTime(t *testing.T) {
	const jobs, bound = 60, 0.25
	s := newStage(t, 20*time.Millisecond)
	s.exec(t, `INSERT INTO video_jobs (job_id, next_poll_at)
	           SELECT 'job_' || g, now() + interval '500 milliseconds' + g * interval '50 milliseconds'
	           FROM generate_series(1, $1::integer) AS g`, jobs)
	spec := s.spec(load.Ours, 0)
	spec.Watch = true
	r, err := load.Run(t.Context(), spec)
	if err != nil {
		t.Fatal(err)
	}
	if p99 := load.Quantile(r.Late, 0.99); len(r.Late) != jobs || r.Early > 0 || p99 > bound {
		t.Errorf("%d of %d rows read, %d early, p99 %.3f s late; want all, none, %v s", len(r.Late), jobs, r.Early, p99, bound)
	}
	s.once(t, jobs)
}
