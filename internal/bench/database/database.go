// Package database starts a PostgreSQL server for the benchmark, makes a fresh
// database for each load, and reads the server's counters.
package database

import (
	"context"
	"fmt"
	"net/url"
	"strconv"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"sumepoller/internal/devstack/server"
	"sumepoller/migrations"
)

// template is the migrated database that fresh ones are cloned from.
const template = "bench_template"

// Server is a running server. One goroutine at a time may use it.
type Server struct {
	Version string // of PostgreSQL

	server *server.Server
	admin  *pgx.Conn
	made   int
}

// settings come on top of those that devstack uses, which switch fsync off.
var settings = []string{
	"fsync=on", "shared_buffers=512MB", "shared_preload_libraries=pg_stat_statements",
	"pg_stat_statements.track=top", "track_wal_io_timing=on",
}

// Start starts a server with the migrated template. Stop it in every case.
func Start(ctx context.Context) (*Server, error) {
	s := &Server{}
	var err error
	if s.server, err = server.Start(ctx, server.Options{Settings: settings}); err != nil {
		return nil, err
	}
	if err := s.prepare(ctx); err != nil {
		s.Stop()
		return nil, fmt.Errorf("prepare the server: %w", err)
	}
	return s, nil
}

func (s *Server) prepare(ctx context.Context) (err error) {
	if s.admin, err = pgx.Connect(ctx, s.server.URL()); err != nil {
		return err
	}
	if _, err := s.admin.Exec(ctx, `CREATE EXTENSION pg_stat_statements`); err != nil {
		return err
	}
	if _, err := s.admin.Exec(ctx, `CREATE DATABASE `+template); err != nil {
		return err
	}
	config, err := pgxpool.ParseConfig(s.url(template))
	if err != nil {
		return err
	}
	if _, err := migrations.Up(ctx, config); err != nil {
		return err
	}
	return s.admin.QueryRow(ctx, `SELECT current_setting('server_version')`).Scan(&s.Version)
}

// Stop stops the server and removes its files.
func (s *Server) Stop() {
	if s.admin != nil {
		_ = s.admin.Close(context.Background())
	}
	s.server.Stop()
}

func (s *Server) url(name string) string {
	u, err := url.Parse(s.server.URL())
	if err != nil {
		return ""
	}
	u.Path = "/" + name
	return u.String()
}

// Database is the database of one load.
type Database struct {
	*pgx.Conn // to prepare and to inspect; the load opens its own connections
	URL       string
	name      string
	lsn       string // where the WAL was at ResetCounters
	server    *Server
}

// Fresh clones the migrated template. Drop it in every case.
func (s *Server) Fresh(ctx context.Context) (*Database, error) { return s.clone(ctx, template) }

// Bare makes a database that holds a table of the three columns that users
// begin with, and nothing else. Drop it in every case.
func (s *Server) Bare(ctx context.Context) (*Database, error) {
	d, err := s.clone(ctx, "template0")
	if err != nil {
		return nil, err
	}
	_, err = d.Exec(ctx, `
		CREATE TABLE video_jobs (
			job_id       text PRIMARY KEY,
			state        text NOT NULL DEFAULT 'pending',
			next_poll_at timestamptz NOT NULL DEFAULT now() + interval '15 seconds'
		);
		CREATE INDEX ON video_jobs (next_poll_at) WHERE state = 'pending'`)
	if err != nil {
		d.Drop(ctx)
		return nil, err
	}
	return d, nil
}

func (s *Server) clone(ctx context.Context, from string) (*Database, error) {
	s.made++
	name := "bench_" + strconv.Itoa(s.made)
	if _, err := s.admin.Exec(ctx, `CREATE DATABASE `+name+` TEMPLATE `+from); err != nil {
		return nil, fmt.Errorf("clone %s: %w", from, err)
	}
	d := &Database{URL: s.url(name), name: name, server: s}
	var err error
	if d.Conn, err = pgx.Connect(ctx, d.URL); err != nil {
		return nil, err
	}
	return d, nil
}

// Drop removes the database, although others may be connected.
func (d *Database) Drop(ctx context.Context) {
	if d.Conn != nil {
		_ = d.Close(ctx)
	}
	_, _ = d.server.admin.Exec(ctx, `DROP DATABASE IF EXISTS `+d.name+` WITH (FORCE)`)
}

// Fill inserts the due jobs job_1 to job_n, the first the oldest, and updates
// the statistics as autovacuum would.
func (d *Database) Fill(ctx context.Context, n int) error {
	if _, err := d.Exec(ctx, `
		INSERT INTO video_jobs (job_id, next_poll_at)
		SELECT 'job_' || g, now() - ($1::integer - g) * interval '1 millisecond' - interval '1 minute'
		FROM generate_series(1, $1::integer) AS g`, n); err != nil {
		return err
	}
	_, err := d.Exec(ctx, `VACUUM (ANALYZE) video_jobs`)
	return err
}

// Pending counts the pending rows.
func (d *Database) Pending(ctx context.Context) (n int, err error) {
	err = d.QueryRow(ctx, `SELECT count(*) FROM video_jobs WHERE state = 'pending'`).Scan(&n)
	return n, err
}

// Counters are what the server counted in one database since ResetCounters. WAL
// is that of the whole server, which nobody else uses.
type Counters struct {
	WAL        float64 // bytes, commits and full pages included
	Statements float64 // BEGIN and COMMIT included
	Buffers    float64 // touched by statements, cached or not
	Execution  float64 // milliseconds in the executor
}

// ResetCounters sets the counters to zero.
func (d *Database) ResetCounters(ctx context.Context) error {
	return d.server.admin.QueryRow(ctx, `SELECT pg_current_wal_insert_lsn()::text FROM pg_stat_statements_reset()`).Scan(&d.lsn)
}

// Counters reads the counters of the database.
func (d *Database) Counters(ctx context.Context) (c Counters, err error) {
	err = d.server.admin.QueryRow(ctx, `
		SELECT pg_current_wal_insert_lsn() - $2::text::pg_lsn, sum(calls)::float8,
		       sum(shared_blks_hit + shared_blks_read)::float8, sum(total_exec_time)
		FROM pg_stat_statements
		WHERE dbid = (SELECT oid FROM pg_database WHERE datname = $1)`, d.name, d.lsn).
		Scan(&c.WAL, &c.Statements, &c.Buffers, &c.Execution)
	return c, err
}

// ClaimBuffers returns the buffers that claims have touched since
// ResetCounters, with their statements on the daily quota. It knows both by
// their SQL.
func (d *Database) ClaimBuffers(ctx context.Context) (n float64, err error) {
	err = d.server.admin.QueryRow(ctx, `
		SELECT sum(shared_blks_hit + shared_blks_read)::float8
		FROM pg_stat_statements
		WHERE dbid = (SELECT oid FROM pg_database WHERE datname = $1)
		  AND query SIMILAR TO '%(claimed AS|FROM read_budget)%'`, d.name).Scan(&n)
	return n, err
}

// Checkpoint writes all pages to disk. The next change of each page then
// writes the full page to the WAL.
func (d *Database) Checkpoint(ctx context.Context) error {
	_, err := d.Exec(ctx, `CHECKPOINT`)
	return err
}

// Connections counts the clients of the database besides d.
func (d *Database) Connections(ctx context.Context) (n int, err error) {
	err = d.server.admin.QueryRow(ctx, `
		SELECT count(*) FROM pg_stat_activity
		WHERE datname = $1 AND backend_type = 'client backend' AND pid <> $2`, d.name, d.PgConn().PID()).Scan(&n)
	return n, err
}

// Snapshot opens a snapshot in another session. Until it is released, vacuum
// and pruning keep every row version that it can see.
func (d *Database) Snapshot(ctx context.Context) (release func(), err error) {
	conn, err := pgx.Connect(ctx, d.URL)
	if err != nil {
		return nil, err
	}
	release = func() { _ = conn.Close(ctx) }
	if _, err := conn.Exec(ctx, `BEGIN ISOLATION LEVEL REPEATABLE READ; SELECT count(*) FROM video_jobs`); err != nil {
		release()
		return nil, err
	}
	return release, nil
}
