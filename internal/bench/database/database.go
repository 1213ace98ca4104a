// Package database gives the benchmark a PostgreSQL server of its own and, on
// it, a fresh database for each run, with the server's own counters around
// what a run does.
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
	server *server.Server
	admin  *pgx.Conn
	made   int
}

// Settings are what the server is started with beside the usual settings of
// development, which do without fsync.
var Settings = []string{
	"fsync=on", "shared_buffers=512MB", "shared_preload_libraries=pg_stat_statements",
	"pg_stat_statements.track=top", "track_wal_io_timing=on",
}

// Start starts a server with the migrated template. Stop it in every case.
func Start(ctx context.Context) (*Server, error) {
	s := &Server{}
	var err error
	if s.server, err = server.Start(ctx, server.Options{Settings: Settings}); err != nil {
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
	_, err = migrations.Up(ctx, config)
	return err
}

// Stop ends the server and removes its files.
func (s *Server) Stop() {
	if s.admin != nil {
		_ = s.admin.Close(context.Background())
	}
	s.server.Stop()
}

// Version returns the server's version.
func (s *Server) Version(ctx context.Context) (v string, err error) {
	err = s.admin.QueryRow(ctx, `SELECT 'PostgreSQL ' || current_setting('server_version')`).Scan(&v)
	return v, err
}

func (s *Server) url(name string) string {
	u, err := url.Parse(s.server.URL())
	if err != nil {
		return ""
	}
	u.Path = "/" + name
	return u.String()
}

// Database is one run's database.
type Database struct {
	*pgx.Conn // for preparing and looking; none of the run's own
	URL       string
	name      string
	server    *Server
}

// Fresh clones the migrated template. Drop it in every case.
func (s *Server) Fresh(ctx context.Context) (*Database, error) { return s.clone(ctx, template) }

// Bare makes a database with the three columns that users begin with, and
// nothing else.
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

// Clone makes a copy of a database that nobody is connected to but d itself,
// whose connection is closed for it.
func (d *Database) Clone(ctx context.Context) (*Database, error) {
	_ = d.Close(ctx)
	return d.server.clone(ctx, d.name+` STRATEGY FILE_COPY`) // large ones too in a moment
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

// Drop removes the database, whoever is connected.
func (d *Database) Drop(ctx context.Context) {
	if d.Conn != nil {
		_ = d.Close(ctx)
	}
	_, _ = d.server.admin.Exec(ctx, `DROP DATABASE IF EXISTS `+d.name+` WITH (FORCE)`)
}

// Fill inserts jobs job_1 … job_n, the first the oldest, all of them due, and
// brings the statistics up to date as autovacuum would.
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

// Pending counts the jobs that are not finished.
func (d *Database) Pending(ctx context.Context) (n int, err error) {
	err = d.QueryRow(ctx, `SELECT count(*) FROM video_jobs WHERE state = 'pending'`).Scan(&n)
	return n, err
}
