// Package migrations holds the schema and brings a database to it.
//
// The schema is SQL that works from PostgreSQL 13 on: sql/ holds the versioned
// steps, which goose runs and counts in its own table video_jobs_schema, apart
// from a version table of the user's. A video_jobs that exists with the
// three columns of the contract is adopted in place: rows, further columns,
// constraints, nullability and the index stay as they are; ours come after.
//
// Migrating is safe while other programs work on the table. Migrators take
// turns; a lock on the table is waited for at most 2.5 seconds at a time, so that
// nobody behind that wait is held up for longer than three; an index is
// built concurrently. What cannot be adopted is told in one line, and then
// nothing was changed.
package migrations

import (
	"context"
	"database/sql"
	"embed"
	"fmt"
	"io/fs"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/pressly/goose/v3"
)

// VersionTable is where the schema's version is kept.
const VersionTable = "video_jobs_schema"

// Latest is the schema version that this program knows.
const Latest = indexVersion

//go:embed sql/*.sql
var steps embed.FS

//go:embed adopt.sql
var adoptSQL string

// Result tells the schema's version before and after.
type Result struct {
	From int64 `json:"from"`
	To   int64 `json:"to"`
}

// Up brings the schema of the database that config names to Latest, in the
// first schema of the search_path. Of config it uses ConnConfig and
// BeforeConnect, and opens connections of its own. A newer schema is left as it
// is. It retries until ctx ends, so give ctx a deadline of minutes. It may run
// at the same time as other migrators and as programs that use the table. Its
// error is one line and holds no password.
func Up(ctx context.Context, config *pgxpool.Config) (Result, error) {
	db := open(config)
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
	if from >= Latest {
		return Result{From: from, To: from}, nil
	}
	if _, err := db.ExecContext(ctx, adoptSQL); err != nil {
		return Result{From: from, To: from}, fmt.Errorf("migrate: %w", plain(err))
	}
	if err := retry(ctx, func() error { return apply(ctx, db) }); err != nil {
		return Result{From: from, To: from}, fmt.Errorf("migrate: %w", plain(err))
	}
	to, err := version(ctx, db)
	if err != nil {
		return Result{From: from}, fmt.Errorf("migrate: read the schema's version: %w", plain(err))
	}
	return Result{From: from, To: to}, nil
}

// apply runs the steps that are not yet counted in the version table.
func apply(ctx context.Context, db *sql.DB) error {
	files, err := fs.Sub(steps, "sql")
	if err != nil {
		return err
	}
	provider, err := goose.NewProvider(goose.DialectPostgres, db, files,
		goose.WithTableName(VersionTable),
		goose.WithDisableGlobalRegistry(true),
		goose.WithLogger(goose.NopLogger()),
		goose.WithGoMigrations(goose.NewGoMigration(indexVersion, &goose.GoFunc{RunDB: ensureDueIndex}, nil)),
	)
	if err != nil {
		return err
	}
	_, err = provider.Up(ctx)
	return err
}

// version returns the newest version that the database has, 0 where it has no
// version table.
func version(ctx context.Context, db *sql.DB) (int64, error) {
	var exists bool
	if err := db.QueryRowContext(ctx, `SELECT to_regclass($1) IS NOT NULL`, VersionTable).Scan(&exists); err != nil || !exists {
		return 0, err
	}
	var v int64
	err := db.QueryRowContext(ctx, `SELECT coalesce(max(version_id), 0) FROM `+VersionTable+` WHERE is_applied`).Scan(&v)
	return v, err
}
