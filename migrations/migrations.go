// Package migrations holds the schema and brings a database to it.
//
// The schema is SQL that works from PostgreSQL 13 on. Its steps are numbered in
// one sequence, below; goose counts them in the table video_jobs_schema, apart
// from a version table that the user's own tools may have. A video_jobs that
// exists with the three columns of the contract is adopted in place: rows,
// further columns, constraints, nullability and the index stay as they are; our
// columns come after.
//
// Before a table is adopted, the product's own writes are tried on it (see
// trial.sql). What can never work is refused in one line that names the
// cure, and then nothing was changed. What works in part is a warning; later
// migrations try again and only warn.
//
// Migrating is safe while other programs work on the table. Migrators take
// turns; a lock on the table is waited for at most two seconds at a time, and
// held for less than one, so that nobody behind that wait is held up for longer
// than three; an index is built concurrently.
package migrations

import (
	"context"
	"database/sql"
	"fmt"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/pressly/goose/v3"
)

// versionTable is where goose keeps the schema's version.
const versionTable = "video_jobs_schema"

// Latest is the schema version that this program knows: the number of steps.
var Latest = int64(len(steps))

// Result is the schema's version before and after, and what the table accepts
// in part only, one line each with its cure.
type Result struct {
	From     int64    `json:"from"`
	To       int64    `json:"to"`
	Warnings []string `json:"warnings,omitempty"`
}

// Up brings the schema of the database that config names to Latest, in the
// first schema of the search_path. Of config it uses ConnConfig and
// BeforeConnect, and opens connections of its own. A newer schema is left as it
// is. It retries until ctx ends, so give ctx a deadline of minutes. It may run
// at the same time as other migrators and as programs that use the table. Its
// error is one line and holds no password.
func Up(ctx context.Context, config *pgxpool.Config) (Result, error) {
	var found findings
	db := open(config, &found)
	defer func() { _ = db.Close() }()
	unlock, err := lock(ctx, db)
	if err != nil {
		return Result{}, fmt.Errorf("migrate: %w", plain(err))
	}
	defer unlock()

	from, err := version(ctx, db)
	if err != nil {
		return Result{}, fmt.Errorf("migrate: read the schema's version: %w", plain(err))
	}
	result := Result{From: from, To: from}
	if from > Latest {
		return result, nil
	}
	if from < Latest {
		if err := retry(ctx, func() error { return apply(ctx, db, &found) }); err != nil {
			return result, fmt.Errorf("migrate: %w", eventTriggers(ctx, db, plain(err)))
		}
		if result.To, err = version(ctx, db); err != nil {
			return result, fmt.Errorf("migrate: read the schema's version: %w", plain(err))
		}
	}
	if from > 0 {
		if err := check(ctx, db, &found); err != nil {
			return result, fmt.Errorf("migrate: %w", plain(err))
		}
	}
	if err := brokenRows(ctx, db, &found); err != nil {
		return result, fmt.Errorf("migrate: %w", plain(err))
	}
	result.Warnings = found.lines()
	return result, nil
}

// apply runs the steps that are not yet counted in the version table. On a
// database without the schema the first step and the version table are one
// transaction, so that a table that is refused leaves nothing behind.
func apply(ctx context.Context, db *sql.DB, found *findings) error {
	if err := awaitBuilders(ctx, db); err != nil {
		return err
	}
	at, err := version(ctx, db)
	if err != nil {
		return err
	}
	if at < 1 {
		found.reset()
		if err := inTx(ctx, db, func(tx *sql.Tx) error { return adopt(ctx, tx, found) }); err != nil {
			return err
		}
	}
	var all []*goose.Migration
	for i, text := range steps {
		all = append(all, goose.NewGoMigration(int64(i+1), &goose.GoFunc{RunDB: step(text)}, nil))
	}
	provider, err := goose.NewProvider(goose.DialectPostgres, db, nil,
		goose.WithTableName(versionTable),
		goose.WithDisableGlobalRegistry(true),
		goose.WithLogger(goose.NopLogger()),
		goose.WithGoMigrations(all...),
	)
	if err != nil {
		return err
	}
	_, err = provider.Up(ctx)
	return err
}

// adopt is the first step with the trial of the product's writes.
func adopt(ctx context.Context, tx *sql.Tx, found *findings) error {
	if err := makeTables(ctx, tx); err != nil {
		return err
	}
	if err := try(ctx, tx, found); err != nil {
		return err
	}
	if _, err := tx.ExecContext(ctx, countVersions(1)); err != nil {
		return ddlError{err}
	}
	return nil
}

// step returns a step of goose: the tables, columns and the due index that are
// missing, and between them the step's own SQL. Each part may run again.
func step(text string) func(context.Context, *sql.DB) error {
	return func(ctx context.Context, db *sql.DB) error {
		err := inTx(ctx, db, func(tx *sql.Tx) error {
			if err := makeTables(ctx, tx); err != nil {
				return err
			}
			if _, err := tx.ExecContext(ctx, text); err != nil {
				return ddlError{err}
			}
			return nil
		})
		if err != nil {
			return err
		}
		return ensureDueIndex(ctx, db)
	}
}

// makeTables makes the tables and columns that are missing.
func makeTables(ctx context.Context, tx *sql.Tx) error {
	for _, text := range []string{adoptSQL, structureSQL} {
		if _, err := tx.ExecContext(ctx, text); err != nil {
			return err
		}
	}
	for _, text := range []string{tablesSQL, addSQL} {
		if _, err := tx.ExecContext(ctx, text); err != nil {
			return ddlError{err}
		}
	}
	return nil
}

func inTx(ctx context.Context, db *sql.DB, do func(*sql.Tx) error) error {
	tx, err := db.BeginTx(ctx, nil)
	if err != nil {
		return err
	}
	defer func() { _ = tx.Rollback() }()
	if err := do(tx); err != nil {
		return err
	}
	return tx.Commit()
}

// version returns the newest version that the database has, 0 where it has no
// version table.
func version(ctx context.Context, db *sql.DB) (int64, error) {
	var exists bool
	if err := db.QueryRowContext(ctx, `SELECT to_regclass($1) IS NOT NULL`, versionTable).Scan(&exists); err != nil || !exists {
		return 0, err
	}
	var v int64
	err := db.QueryRowContext(ctx, `SELECT coalesce(max(version_id), 0) FROM `+versionTable+` WHERE is_applied`).Scan(&v)
	return v, err
}
