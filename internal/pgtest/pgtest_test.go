package pgtest_test

import (
	"strings"
	"sync"
	"testing"

	"sumepoller/internal/pgtest"
)

func TestURL(t *testing.T) {
	t.Parallel()
	pool := pgtest.Pool(t, pgtest.URL(t))
	var jobs, version int
	err := pool.QueryRow(t.Context(), `SELECT (SELECT count(*) FROM video_jobs), (SELECT max(version_id) FROM video_jobs_schema)`).Scan(&jobs, &version)
	if err != nil || jobs != 0 || version == 0 {
		t.Errorf("got %d jobs, version %d, error %v", jobs, version, err)
	}
}

func TestEmpty(t *testing.T) {
	t.Parallel()
	pool := pgtest.Pool(t, pgtest.Empty(t))
	var absent bool
	if err := pool.QueryRow(t.Context(), `SELECT to_regclass('video_jobs') IS NULL`).Scan(&absent); err != nil || !absent {
		t.Errorf("got absent %v, error %v", absent, err)
	}
}

func TestURL_Cleanup(t *testing.T) {
	t.Parallel()
	var name string
	t.Run("inner", func(t *testing.T) {
		url := pgtest.URL(t)
		name = url[strings.LastIndex(url, "/")+1:]
		name, _, _ = strings.Cut(name, "?")
		// A connection that is still open does not keep the database.
		conn := pgtest.Pool(t, url)
		if err := conn.Ping(t.Context()); err != nil {
			t.Fatal(err)
		}
	})
	pool := pgtest.Pool(t, pgtest.Empty(t))
	var there bool
	if err := pool.QueryRow(t.Context(), `SELECT EXISTS (SELECT FROM pg_database WHERE datname = $1)`, name).Scan(&there); err != nil || there {
		t.Errorf("database %q: got there %v, error %v", name, there, err)
	}
}

func TestURL_Concurrent(t *testing.T) {
	t.Parallel()
	urls := make([]string, 12)
	var all sync.WaitGroup
	for i := range urls {
		all.Go(func() { urls[i] = pgtest.URL(t) })
	}
	all.Wait()
	seen := map[string]bool{}
	for _, url := range urls {
		if seen[url] || url == "" {
			t.Errorf("got %q twice or empty", url)
		}
		seen[url] = true
	}
}
