// Package requests carries out operator requests on the tables: backfill, inspect
// and stop.
//
// Each request is one transaction. It locks rows in the order of job_id, as
// settling does, and needs no state of a session. The statements are in the .sql
// files of this directory; docs/design.md, "Statements and the planner", explains
// their form.
package requests

import (
	"context"
	"embed"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"sumepoller/internal/operator"
	"sumepoller/internal/postgres"
	"sumepoller/internal/postgres/statement"
)

//go:embed *.sql
var files embed.FS

var setTimeoutsSQL = statement.Read(files, "set_timeouts")

// longestLease is the argument of the fragment unleased.
var longestLease = statement.LongestLease.Microseconds()

// Table implements operator.Table.
type Table struct {
	pool *pgxpool.Pool
}

var _ operator.Table = (*Table)(nil)

// New returns a table on pool. The caller closes the pool.
func New(pool *pgxpool.Pool) *Table { return &Table{pool: pool} }

// A request waits this long for a row that another program has locked, and is
// tried this often. After that it fails and has changed nothing. It skips no row,
// since its answer would then claim more than was done.
const (
	lockTimeout      = 3 * time.Second
	attempts         = 3
	statementTimeout = 30 * time.Second
)

// change runs work in one transaction, and repeats it if a lock was in the way.
// At READ COMMITTED each statement sees what was committed before it, also by the
// transaction whose locks it waited for.
func (t *Table) change(ctx context.Context, work func(pgx.Tx) error) error {
	var err error
	for range attempts {
		err = t.inTx(ctx, pgx.TxOptions{IsoLevel: pgx.ReadCommitted}, work)
		if !conflict(err) || ctx.Err() != nil {
			break
		}
	}
	if conflict(err) {
		return fmt.Errorf("another program has locked rows of this request; nothing was changed, ask again: %w", err)
	}
	return postgres.Explain(err)
}

// inTx runs work in one transaction. If the connection fails, only the beginning
// is repeated: after it the counts of a second attempt would be wrong.
func (t *Table) inTx(ctx context.Context, options pgx.TxOptions, work func(pgx.Tx) error) error {
	var tx pgx.Tx
	err := postgres.Retry(ctx, func() (err error) {
		tx, err = t.begin(ctx, options)
		return err
	})
	if err != nil {
		return fmt.Errorf("begin: %w", err)
	}
	defer func() { _ = tx.Rollback(context.WithoutCancel(ctx)) }() // no effect after the commit
	if err := work(tx); err != nil {
		return err
	}
	if err := tx.Commit(ctx); err != nil {
		return fmt.Errorf("commit, which may have succeeded; ask again: %w", err)
	}
	return nil
}

func (t *Table) begin(ctx context.Context, options pgx.TxOptions) (pgx.Tx, error) {
	tx, err := t.pool.BeginTx(ctx, options)
	if err != nil {
		return nil, err
	}
	args := statement.Args{"lock_timeout": milliseconds(lockTimeout), "statement_timeout": milliseconds(statementTimeout)}
	if _, err := tx.Exec(ctx, setTimeoutsSQL, args); err != nil {
		_ = tx.Rollback(context.WithoutCancel(ctx))
		return nil, err
	}
	return tx, nil
}

func milliseconds(d time.Duration) string { return fmt.Sprintf("%dms", d.Milliseconds()) }

// wrap names the request that failed. A character that the database's encoding
// does not have makes the request invalid, in the field named.
func wrap(request, field string, err error) error {
	if postgres.SQLState(err) == "22P05" {
		return operator.InvalidRequest(field + ": a value holds a character that the database's encoding does not have")
	}
	return fmt.Errorf("%s: %w", request, err)
}

// conflict reports a lock timeout, a deadlock with a program that locks in another
// order, or a serialization failure.
func conflict(err error) bool {
	switch postgres.SQLState(err) {
	case postgres.LockTimeout, "40P01", "40001":
		return true
	}
	return false
}

// list returns an empty array for nil, which would be NULL and match no row.
func list(s []string) []string {
	if s == nil {
		return []string{}
	}
	return s
}

// collect reads all rows of a query into a slice that is never nil. Each row is
// scanned into the fields of row, in the query's order.
func collect[T any](rows pgx.Rows, err error, row *T, fields ...any) ([]T, error) {
	if err != nil {
		return nil, err
	}
	all := []T{}
	_, err = pgx.ForEachRow(rows, fields, func() error {
		all = append(all, *row)
		return nil
	})
	return all, err
}
