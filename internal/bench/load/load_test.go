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

// stage is a database and an API that answers every first read with the end of
// the job.
type stage struct {
	url    string
	api    *sumetest.API
	apiURL string
	pool   *pgxpool.Pool
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
	return stage{url: url, api: api, apiURL: server.URL, pool: pgtest.Pool(t, url)}
}

func (s stage) exec(t *testing.T, sql string, args ...any) {
	t.Helper()
	if _, err := s.pool.Exec(t.Context(), sql, args...); err != nil {
		t.Fatal(err)
	}
}

// addDue inserts the due jobs job_1 to job_n.
func (s stage) addDue(t *testing.T, n int) {
	t.Helper()
	s.exec(t, `INSERT INTO video_jobs (job_id, next_poll_at)
	           SELECT 'job_' || g, now() - g * interval '1 millisecond' FROM generate_series(1, $1::integer) AS g`, n)
}

func (s stage) spec(kind string, jobs int) load.Spec {
	return load.Spec{
		Kind: kind, DatabaseURL: s.url, APIURL: s.apiURL, Concurrency: 32, Jobs: jobs, Budget: 20 * time.Second,
	}
}

// checkReadOnce checks that each of so many jobs was read, and none twice.
func (s stage) checkReadOnce(t *testing.T, jobs int) {
	t.Helper()
	stats := s.api.Stats()
	if len(stats.Jobs) != jobs || stats.Reads != jobs || stats.Overlapping > 0 {
		t.Errorf("%d reads of %d jobs, %d during another read of the same job; want each of %d jobs read once",
			stats.Reads, len(stats.Jobs), stats.Overlapping, jobs)
	}
}

func TestRun_ReadsEachJobOnce(t *testing.T) {
	t.Parallel()
	for _, kind := range []string{load.Poller, load.HeldLock, load.NoDatabase} {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			const jobs = 50
			s := newStage(t, 0)
			s.addDue(t, jobs)
			r, err := load.Run(t.Context(), s.spec(kind, jobs))
			if err != nil || r.Reads != jobs || r.Rate() <= 0 {
				t.Fatalf("result %+v, error %v", r, err)
			}
			s.checkReadOnce(t, jobs)
		})
	}
}

func TestRun_EightSandboxes(t *testing.T) {
	t.Parallel()
	const jobs, sandboxes = 2000, 8
	s := newStage(t, 5*time.Millisecond)
	s.addDue(t, jobs)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	var left atomic.Int64
	left.Store(jobs)
	finished := s.listen(t, func() {
		if left.Add(-1) == 0 {
			cancel() // a run would wait for leases of others that might expire
		}
	})
	defer finished()
	var all sync.WaitGroup
	for range sandboxes {
		all.Go(func() {
			if _, err := load.Run(ctx, s.spec(load.Poller, 0)); err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
	if n := left.Load(); n > 0 {
		t.Errorf("%d of %d jobs were not announced", n, jobs)
	}
	s.checkReadOnce(t, jobs)
}

// listen calls done for each completion event, until end is called.
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

// Not parallel: the other tests use all processors.
func TestRun_RowsDueDuringRun(t *testing.T) {
	const jobs, bound = 60, 250 * time.Millisecond
	s := newStage(t, 20*time.Millisecond)
	s.exec(t, `INSERT INTO video_jobs (job_id, next_poll_at)
	           SELECT 'job_' || g, now() + interval '500 milliseconds' + g * interval '50 milliseconds'
	           FROM generate_series(1, $1::integer) AS g`, jobs)
	var first time.Time
	if err := s.pool.QueryRow(t.Context(), `SELECT min(next_poll_at) FROM video_jobs`).Scan(&first); err != nil {
		t.Fatal(err)
	}
	if _, err := load.Run(t.Context(), s.spec(load.Poller, 0)); err != nil {
		t.Fatal(err)
	}
	for i, at := range s.api.Times() {
		if late := at.Sub(first.Add(time.Duration(i) * 50 * time.Millisecond)); late < 0 || late > bound {
			t.Errorf("read %d came %v after its row was due; want 0 to %v", i+1, late, bound)
		}
	}
	s.checkReadOnce(t, jobs)
}
