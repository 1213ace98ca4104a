//go:build pooler

package jobs_test

import (
	"errors"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"sumepoller/internal/config"
	"sumepoller/internal/pgtest"
	"sumepoller/internal/pgtest/pooler"
	"sumepoller/internal/poller"
	"sumepoller/internal/postgres"
	"sumepoller/internal/postgres/jobs"
)

const execMode = "?default_query_exec_mode=exec&application_name=sandbox"

// pooled connects as a sandbox does.
func pooled(t *testing.T, url string) *pgxpool.Pool {
	t.Helper()
	pool, err := postgres.Connect(t.Context(), config.Database{URL: url, MaxConns: 4}, nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { postgres.Close(pool, time.Second) })
	return pool
}

// Two sandboxes share the one connection of a transaction pooler.
func TestPooler_TwoStores(t *testing.T) {
	t.Parallel()
	db := pgtest.New(t)
	const rows = 300
	db.InsertDue(rows)
	url := pooler.Start(t, db.URL, 1) + execMode
	var all sync.WaitGroup
	var done [2]int
	for i := range done {
		s := jobs.New(pooled(t, url))
		all.Go(func() { done[i] = work(t, s) })
	}
	all.Wait()
	if done[0]+done[1] != rows {
		t.Errorf("%d and %d settled, want %d together", done[0], done[1], rows)
	}
	if n := db.Number(`SELECT count(*) FROM video_jobs WHERE state = 'completed' AND polls = 1 AND lost_leases = 0`); n != rows {
		t.Errorf("%d rows are read once and completed, want %d", n, rows)
	}
	if n := db.Number(`SELECT sum(reads)::integer FROM read_budget`); n != rows {
		t.Errorf("%d reads taken, want %d", n, rows)
	}
	const open = `SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND application_name = 'sandbox'`
	if n := db.Number(open); n != 1 {
		t.Errorf("%d server connections, want one", n)
	}
}

// work goes on with every method until nothing is due.
func work(t *testing.T, s *jobs.Store) (done int) {
	for {
		r := counted(7, 1000)
		got, err := s.Claim(t.Context(), r)
		if err != nil {
			t.Error(err)
		}
		if err != nil || len(got.Jobs) == 0 {
			return done
		}
		var batch []poller.Settlement
		for _, j := range got.Jobs[1:] {
			batch = append(batch, finish(j.ID, r.Lease))
		}
		unread := poller.Release{JobID: got.Jobs[0].ID, Lease: r.Lease, Unread: true}
		if len(batch) == 0 { // the last row is not released, or the loop would not end
			batch, unread = append(batch, finish(unread.JobID, r.Lease)), poller.Release{}
		}
		results, settleErr := s.Settle(t.Context(), batch)
		for _, r := range results {
			if r.Outcome == poller.Written {
				done++
			}
		}
		var releaseErr error
		if unread.JobID != "" {
			_, releaseErr = s.Release(t.Context(), got.QuotaDate, []poller.Release{unread})
		}
		_, _, nextErr := s.NextDue(t.Context(), []poller.LeaseID{r.Lease})
		_, todayErr := s.Today(t.Context())
		_, backlogErr := s.Backlog(t.Context())
		if err := errors.Join(settleErr, releaseErr, nextErr, todayErr, backlogErr); err != nil {
			t.Error(err)
			return done
		}
	}
}

// Without default_query_exec_mode=exec the driver's own error is returned, so that
// a search for it finds the setting.
func TestPooler_PreparedStatements(t *testing.T) {
	t.Parallel()
	db := pgtest.New(t)
	db.InsertDue(10)
	url := pooler.Start(t, db.URL, 1)
	first, second := jobs.New(pooled(t, url)), jobs.New(pooled(t, url))
	claim(t, first, uncounted(1))
	_, err := second.Claim(t.Context(), uncounted(1))
	// Prepared under this name already, or not known on this connection.
	if code := postgres.SQLState(err); code != "42P05" && code != "26000" {
		t.Errorf("error %v, want a prepared statement that exists", err)
	}
}

func pooledOnce(t *testing.T, url string) string {
	t.Helper()
	return pooler.Start(t, url, 1)
}

func TestPooler_Settings(t *testing.T) {
	t.Parallel()
	eachSetting(t, pooledOnce)
}

func TestPooler_Latin1(t *testing.T) {
	t.Parallel()
	eachEncoding(t, pooledOnce, "")
	eachEncoding(t, pooledOnce, "&client_encoding=LATIN1")
}
