package migrations

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"
)

const (
	// trialLimit limits the trial's statement, which ends after 0.6 s unless one
	// write takes longer.
	trialLimit = 800 * time.Millisecond
	// scanLimit limits the search for rows that break a constraint, which reads
	// the whole table and delays no other program.
	scanLimit = 10 * time.Second
)

// queryCanceled is the SQLSTATE of a statement that reached its timeout.
const queryCanceled = "57014"

// SQLSTATEs of the warnings that the SQL of this package raises.
const (
	warned = "01S01" // a write that the table does not accept
	denied = "01S02" // a right or a policy that the role lacks
	hidden = "01S03" // a policy that may hide rows from the role
)

// findings collects warnings in their order, each once.
type findings struct {
	mu   sync.Mutex
	list []finding
}

type finding struct{ code, line string }

func (f *findings) notice(n *pgconn.Notice) {
	if n.Code == warned || n.Code == denied || n.Code == hidden {
		f.add(n.Code, strings.ReplaceAll(n.Message, "\n", " "))
	}
}

func (f *findings) add(code, line string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if !slices.Contains(f.list, finding{code, line}) {
		f.list = append(f.list, finding{code, line})
	}
}

func (f *findings) reset() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.list = nil
}

// lines returns the warnings with one of the codes, or all if there is no code.
func (f *findings) lines(codes ...string) []string {
	f.mu.Lock()
	defer f.mu.Unlock()
	var lines []string
	for _, found := range f.list {
		if len(codes) == 0 || slices.Contains(codes, found.code) {
			lines = append(lines, found.line)
		}
	}
	return lines
}

// try runs the trial of the product's writes in a savepoint. It returns an error
// if the table cannot be adopted. A trial that did not finish is a warning.
func try(ctx context.Context, tx *sql.Tx, found *findings) error {
	if _, err := tx.ExecContext(ctx, fmt.Sprintf(`SAVEPOINT trial; SET LOCAL statement_timeout = %d`, trialLimit.Milliseconds())); err != nil {
		return err
	}
	_, err := tx.ExecContext(ctx, trialSQL)
	var pgErr *pgconn.PgError
	switch {
	case errors.As(err, &pgErr) && (pgErr.Code == queryCanceled || pgErr.Code == lockNotAvailable) && ctx.Err() == nil:
		found.add(warned, "the writes to video_jobs could not all be tried in time: look for a slow trigger on it, or a program that locks it")
	case err != nil:
		return err
	}
	_, err = tx.ExecContext(ctx, `ROLLBACK TO SAVEPOINT trial; RELEASE SAVEPOINT trial`)
	return err
}

// ddlError is an error of a statement that creates or alters a table.
type ddlError struct{ error }

func (e ddlError) Unwrap() error { return e.error }

// eventTriggers adds the names of the event triggers to a ddlError: one of them may
// have refused the statement.
func eventTriggers(ctx context.Context, db *sql.DB, err error) error {
	if !errors.As(err, new(ddlError)) || ctx.Err() != nil {
		return err
	}
	var names sql.NullString
	query := `SELECT string_agg(quote_ident(evtname), ', ' ORDER BY evtname) FROM pg_event_trigger WHERE evtenabled IN ('O', 'A') AND evtevent <> 'login'`
	if failed := db.QueryRowContext(ctx, query).Scan(&names); failed != nil || !names.Valid {
		return err
	}
	return &oneLine{line: fmt.Sprintf("%v: if an event trigger refused this (%s), ALTER EVENT TRIGGER ... DISABLE for the migration", err, names.String), cause: err}
}

// check checks a table that was adopted before. It only warns, and takes no lock
// that blocks writers.
func check(ctx context.Context, db *sql.DB, found *findings) error {
	tx, err := db.BeginTx(ctx, nil)
	if err != nil {
		return err
	}
	defer func() { _ = tx.Rollback() }()
	if _, err := tx.ExecContext(ctx, structureSQL); err != nil {
		return err
	}
	return try(ctx, tx, found)
}

// Access is what a login lacks on video_jobs, one line each with what to do.
type Access struct {
	Denied []string // rights and policies without which its writes fail
	Hidden []string // policies that may hide rows from it
}

// TryAs tries those of the product's writes on video_jobs that config's login has
// privileges for, and rolls them back. It opens connections with config's
// ConnConfig and BeforeConnect.
func TryAs(ctx context.Context, config *pgxpool.Config) (Access, error) {
	var found findings
	db := open(config, &found)
	defer func() { _ = db.Close() }()
	if err := inTx(ctx, db, func(tx *sql.Tx) error { return try(ctx, tx, &found) }); err != nil {
		return Access{}, fmt.Errorf("try the writes to video_jobs: %w", plain(err))
	}
	return Access{Denied: found.lines(denied), Hidden: found.lines(hidden)}, nil
}

// unchecked finds the constraints that are NOT VALID: existing rows may break them.
// NOT NULL constraints of this kind exist from PostgreSQL 18 on.
const unchecked = `SELECT quote_ident(k.conname),
       CASE k.contype WHEN 'n' THEN format('%I IS NOT NULL', a.attname) ELSE pg_get_expr(k.conbin, k.conrelid) END
  FROM pg_constraint k
  LEFT JOIN pg_attribute a ON a.attrelid = k.conrelid AND a.attnum = k.conkey[1]
 WHERE k.conrelid = 'video_jobs'::regclass AND k.contype IN ('c', 'n') AND NOT k.convalidated
   AND coalesce((to_jsonb(k)->>'conenforced')::boolean, true)
 ORDER BY k.conname`

// brokenRows warns of rows that break a constraint that is NOT VALID: no write to
// them succeeds. It reads the table for scanLimit at most.
func brokenRows(ctx context.Context, db *sql.DB, found *findings) error {
	return inTx(ctx, db, func(tx *sql.Tx) error {
		rows, err := tx.QueryContext(ctx, unchecked)
		if err != nil {
			return err
		}
		defer func() { _ = rows.Close() }()
		var constraints [][2]string
		for rows.Next() {
			var name, condition string
			if err := rows.Scan(&name, &condition); err != nil {
				return err
			}
			constraints = append(constraints, [2]string{name, condition})
		}
		if err := rows.Err(); err != nil || len(constraints) == 0 {
			return err
		}
		for _, c := range constraints {
			if err := brokenRow(ctx, tx, c[0], c[1], found); err != nil {
				return err
			}
		}
		return nil
	})
}

func brokenRow(ctx context.Context, tx *sql.Tx, constraint, condition string, found *findings) error {
	if _, err := tx.ExecContext(ctx, fmt.Sprintf(`SAVEPOINT scan; SET LOCAL statement_timeout = %d`, scanLimit.Milliseconds())); err != nil {
		return err
	}
	var id string
	err := actAsOwner(ctx, tx)
	if err == nil {
		err = tx.QueryRowContext(ctx, `SELECT job_id FROM video_jobs WHERE NOT (`+condition+`) LIMIT 1`).Scan(&id)
	}
	var pgErr *pgconn.PgError
	switch {
	case errors.Is(err, sql.ErrNoRows):
	case err == nil:
		found.add(warned, fmt.Sprintf("constraint %s of video_jobs is NOT VALID, and rows break it, such as job_id %q: no write to them succeeds: correct them, then ALTER TABLE video_jobs VALIDATE CONSTRAINT %s", constraint, id, constraint))
	case errors.As(err, &pgErr) && ctx.Err() == nil:
		found.add(warned, fmt.Sprintf("constraint %s of video_jobs is NOT VALID, and its rows could not be checked (SQLSTATE %s): ALTER TABLE video_jobs VALIDATE CONSTRAINT %s", constraint, pgErr.Code, constraint))
	default:
		return err
	}
	_, err = tx.ExecContext(ctx, `ROLLBACK TO SAVEPOINT scan; RELEASE SAVEPOINT scan`)
	return err
}
