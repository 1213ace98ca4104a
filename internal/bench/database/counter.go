package database

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"
)

// Counters are what the server counted in one database; WAL is the whole
// server's, whose only user the benchmark is.
type Counters struct {
	WAL        float64 // bytes written to the log, commits and full pages included
	Statements float64 // BEGIN and COMMIT included
	Buffers    float64 // touched by statements, cached or not
	Execution  float64 // milliseconds inside the executor
}

// Checkpoint writes everything out, so that the next change of each page logs
// the whole page, as after any checkpoint.
func (d *Database) Checkpoint(ctx context.Context) error {
	_, err := d.Exec(ctx, `CHECKPOINT`)
	return err
}

// Counters reads the counters of the database.
func (d *Database) Counters(ctx context.Context) (Counters, error) { return d.counters(ctx, "%") }

// Claims reads the counters of its claims, with the count of reads that is a
// part of them.
func (d *Database) Claims(ctx context.Context) (Counters, error) {
	return d.counters(ctx, "%(claimed AS|FROM read_budget)%")
}

func (d *Database) counters(ctx context.Context, like string) (c Counters, err error) {
	err = d.server.admin.QueryRow(ctx, `
		SELECT pg_current_wal_insert_lsn() - '0/0',
		       coalesce(sum(calls), 0)::float8,
		       coalesce(sum(shared_blks_hit + shared_blks_read), 0)::float8,
		       coalesce(sum(total_exec_time), 0)::float8
		FROM pg_stat_statements
		WHERE dbid = (SELECT oid FROM pg_database WHERE datname = $1) AND query SIMILAR TO $2`, d.name, like).
		Scan(&c.WAL, &c.Statements, &c.Buffers, &c.Execution)
	if err != nil {
		return c, fmt.Errorf("read the server's counters: %w", err)
	}
	return c, nil
}

// Since returns what was counted after before.
func (c Counters) Since(before Counters) Counters {
	return Counters{c.WAL - before.WAL, c.Statements - before.Statements, c.Buffers - before.Buffers, c.Execution - before.Execution}
}

// Connections counts the clients connected to the database beside d.
func (d *Database) Connections(ctx context.Context) (n int, err error) {
	err = d.server.admin.QueryRow(ctx, `
		SELECT count(*) FROM pg_stat_activity
		WHERE datname = $1 AND backend_type = 'client backend' AND pid <> $2`, d.name, d.PgConn().PID()).Scan(&n)
	return n, err
}

// Snapshot opens a snapshot in a session of its own, which vacuum and pruning
// have to respect until it is released.
func (d *Database) Snapshot(ctx context.Context) (release func(), err error) {
	conn, err := pgx.Connect(ctx, d.URL)
	if err != nil {
		return nil, err
	}
	release = func() { _ = conn.Close(ctx) }
	if _, err := conn.Exec(ctx, `BEGIN ISOLATION LEVEL REPEATABLE READ`); err != nil {
		release()
		return nil, err
	}
	if _, err := conn.Exec(ctx, `SELECT count(*) FROM video_jobs`); err != nil {
		release()
		return nil, err
	}
	return release, nil
}
