// Package migrations holds the schema and brings a database to it.
//
// The schema is SQL that works from PostgreSQL 13 on. Its steps are the files of
// sql/steps. goose counts them in the table video_jobs_schema, so that it does not
// touch a version table of the user's tools. A video_jobs that exists with the three
// columns that users have is adopted in place: its rows, columns, constraints and
// indexes stay as they are, and the product's columns are added after them.
//
// Before a table is adopted, the product's writes are tried on it (trial.sql). A
// write that can never work is an error of one line that says what to do, and
// nothing is changed. A write that works in part is a warning. Later migrations try
// again and only warn.
//
// Migrating is safe while other programs use the table. Migrators take turns. A
// migrator waits at most two seconds at a time for a lock on the table and holds it
// for less than one, so that it delays other programs by less than three. An
// index is built concurrently.
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

// Result is the schema's version before and after. Each warning is one line: a
// write that the table accepts in part only, and what to do.
type Result struct {
	From     int64    `json:"from"`
	To       int64    `json:"to"`
	Warnings []string `json:"warnings,omitempty"`
}

// Up brings the schema of config's database to Latest, in the first schema of the
// search_path. It leaves a newer schema as it is. It opens connections with
// config's ConnConfig and BeforeConnect. It retries until ctx ends, so give ctx a
// deadline of minutes. Other migrators, and programs that use the table, may run at
// the same time. The error is one line and holds no password.
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

// apply runs the steps that the version table does not have. On a database without
// the schema, the first step and the version table are one transaction, so that a
// refused table leaves nothing behind.
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

// adopt runs the first step and the trial of the product's writes.
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

// step returns a step for goose: it makes the tables and columns that are missing,
// runs the file's SQL, and makes the due index if it is missing. Each part can run
// again.
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

// version returns the version of the schema, 0 without a version table.
func version(ctx context.Context, db *sql.DB) (int64, error) {
	var exists bool
	if err := db.QueryRowContext(ctx, `SELECT to_regclass($1) IS NOT NULL`, versionTable).Scan(&exists); err != nil || !exists {
		return 0, err
	}
	var v int64
	err := db.QueryRowContext(ctx, `SELECT coalesce(max(version_id), 0) FROM `+versionTable+` WHERE is_applied`).Scan(&v)
	return v, err
}
