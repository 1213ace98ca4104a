package pgtest

import (
	"context"
	"fmt"
	"net/url"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
)

// DB is a fresh database with the migrated schema, and a pool on it. Its
// methods fail the test on errors.
type DB struct {
	testing.TB
	URL  string
	Pool *pgxpool.Pool
}

// New returns a fresh database, which is dropped at the test's cleanup.
func New(t testing.TB) *DB {
	t.Helper()
	databaseURL := URL(t)
	return &DB{TB: t, URL: databaseURL, Pool: Pool(t, databaseURL)}
}

// Exec runs a statement.
func (db *DB) Exec(sql string, args ...any) {
	db.Helper()
	if _, err := db.Pool.Exec(db.Context(), sql, args...); err != nil {
		db.Fatalf("%s: %v", sql, err)
	}
}

// Value returns the one value that a query selects.
func Value[T any](db *DB, sql string, args ...any) T {
	db.Helper()
	rows, err := db.Pool.Query(db.Context(), sql, args...)
	if err != nil {
		db.Fatalf("%s: %v", sql, err)
	}
	got, err := pgx.CollectExactlyOneRow(rows, pgx.RowTo[T])
	if err != nil {
		db.Fatalf("%s: %v", sql, err)
	}
	return got
}

// Number returns the one number that a query selects.
func (db *DB) Number(sql string, args ...any) int {
	db.Helper()
	return Value[int](db, sql, args...)
}

// Strings returns the column of strings that a query selects.
func (db *DB) Strings(sql string, args ...any) []string {
	db.Helper()
	rows, err := db.Pool.Query(db.Context(), sql, args...)
	if err != nil {
		db.Fatalf("%s: %v", sql, err)
	}
	got, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if err != nil {
		db.Fatalf("%s: %v", sql, err)
	}
	return got
}

// InsertDue inserts the jobs job_1 … job_n. They are due, a second apart, job_n
// for longest.
func (db *DB) InsertDue(n int) {
	db.Helper()
	db.Exec(`INSERT INTO video_jobs (job_id, next_poll_at)
	         SELECT 'job_' || g, now() - g * interval '1 second' FROM generate_series(1, $1::integer) AS g`, n)
}

// Insert inserts a job that has been due for so long. A negative duration makes
// it due later.
func (db *DB) Insert(id string, late time.Duration) {
	db.Helper()
	db.Exec(`INSERT INTO video_jobs (job_id, next_poll_at) VALUES ($1, now() - $2::bigint * interval '1 microsecond')`, id, late.Microseconds())
}

// Connect opens a connection that is closed at the test's cleanup.
func (db *DB) Connect() *pgx.Conn {
	db.Helper()
	conn, err := pgx.Connect(db.Context(), db.URL)
	if err != nil {
		db.Fatal(err)
	}
	db.Cleanup(func() { _ = conn.Close(context.WithoutCancel(db.Context())) })
	return conn
}

// OneConnection opens a pool of one connection.
func (db *DB) OneConnection() *pgxpool.Pool {
	db.Helper()
	return Pool(db, db.With("pool_max_conns", "1"))
}

// With returns the database's URL with a parameter added.
func (db *DB) With(name, value string) string {
	db.Helper()
	return With(db, db.URL, name, value)
}

// With adds a parameter to a connection string.
func With(t testing.TB, databaseURL, name, value string) string {
	t.Helper()
	u, err := url.Parse(databaseURL)
	if err != nil {
		t.Fatal(err)
	}
	query := u.Query()
	query.Set(name, value)
	u.RawQuery = query.Encode()
	return u.String()
}

// Lock locks rows of video_jobs, as another program would, until unlock is
// called or the test ends.
func (db *DB) Lock(ids ...string) (unlock func()) {
	db.Helper()
	tx, err := db.Connect().Begin(db.Context())
	if err != nil {
		db.Fatal(err)
	}
	if _, err := tx.Exec(db.Context(), `SELECT job_id FROM video_jobs WHERE job_id = ANY ($1) FOR UPDATE`, ids); err != nil {
		db.Fatal(err)
	}
	return func() {
		if err := tx.Rollback(context.WithoutCancel(db.Context())); err != nil {
			db.Error(err)
		}
	}
}

// AwaitLockWaits returns as soon as n sessions of the database wait for a lock.
func (db *DB) AwaitLockWaits(n int) {
	db.Helper()
	const waiting = `SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'`
	for db.Number(waiting) < n {
		if db.Context().Err() != nil {
			db.Fatalf("fewer than %d sessions wait for a lock", n)
		}
	}
}

// Blocks counts the blocks of video_jobs and its indexes that do touches through
// pool's one connection. Servers before PostgreSQL 15 cannot flush their
// statistics on demand: there it counts 0.
func (db *DB) Blocks(pool *pgxpool.Pool, do func()) int {
	db.Helper()
	if db.Number(`SELECT current_setting('server_version_num')::integer`) < 150000 {
		do()
		return 0
	}
	touched := func() (n int) {
		db.Helper()
		if _, err := pool.Exec(db.Context(), `SELECT pg_stat_force_next_flush()`); err != nil {
			db.Fatal(err)
		}
		err := pool.QueryRow(db.Context(), `SELECT (idx_blks_hit + idx_blks_read + heap_blks_hit + heap_blks_read)::integer
			FROM pg_statio_user_tables WHERE relname = 'video_jobs'`).Scan(&n)
		if err != nil {
			db.Fatal(err)
		}
		return n
	}
	before := touched()
	do()
	return touched() - before
}

// Names returns n ids in alphabetical order.
func Names(prefix string, n int) []string {
	ids := make([]string, n)
	for i := range ids {
		ids[i] = fmt.Sprintf("%s%06d", prefix, i+1)
	}
	return ids
}
