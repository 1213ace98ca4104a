package requests

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"sumepoller/internal/operator"
	"sumepoller/internal/postgres"
)

// Table is the table as an operator's payload uses it; it implements
// operator.Table. Each method is one transaction, takes its row locks in the
// order of job_id, as settling does, and keeps no state of a session.
type Table struct {
	pool *pgxpool.Pool
}

var _ operator.Table = (*Table)(nil)

// New returns the by-hand work on the pool's database.
func New(pool *pgxpool.Pool) *Table { return &Table{pool: pool} }

// A row that another program holds is waited for this long, and the whole
// transaction is tried this often; then it is refused with nothing changed.
// A row is never passed over, since the answer would claim more than was done.
const (
	handLockTimeout = 3 * time.Second
	handAttempts    = 3
	handTimeout     = 30 * time.Second // of one statement
)

// handTimeouts are the transaction's own: a role's defaults are made for the
// loop's short statements. Between two statements this program is never longer
// at work than one statement may take.
const handTimeouts = `
SELECT set_config('lock_timeout', $1::text, true),
       set_config('statement_timeout', $2::text, true),
       set_config('idle_in_transaction_session_timeout', $2::text, true)`

// change runs work in one transaction, and again where a lock was in the way.
// Each statement sees what was committed before it, whatever the role's default
// isolation is: what was waited for is seen.
func (h *Table) change(ctx context.Context, work func(pgx.Tx) error) error {
	var err error
	for range handAttempts {
		err = h.inTx(ctx, pgx.TxOptions{IsoLevel: pgx.ReadCommitted}, work)
		if !lockInTheWay(err) || ctx.Err() != nil {
			break
		}
	}
	if lockInTheWay(err) {
		return fmt.Errorf("another program holds rows of this payload; nothing was changed, ask again: %w", err)
	}
	return postgres.Explain(err)
}

// inTx runs work in one transaction. Only its beginning is tried again when a
// connection fails: after that the counts of a second attempt would be wrong.
func (h *Table) inTx(ctx context.Context, options pgx.TxOptions, work func(pgx.Tx) error) error {
	var tx pgx.Tx
	err := postgres.Retry(ctx, func() (err error) {
		tx, err = h.begin(ctx, options)
		return err
	})
	if err != nil {
		return fmt.Errorf("begin: %w", err)
	}
	defer func() { _ = tx.Rollback(context.WithoutCancel(ctx)) }() // nothing, once it is committed
	if err := work(tx); err != nil {
		return err
	}
	if err := tx.Commit(ctx); err != nil {
		return fmt.Errorf("commit, which may have succeeded; ask again: %w", err)
	}
	return nil
}

func (h *Table) begin(ctx context.Context, options pgx.TxOptions) (pgx.Tx, error) {
	tx, err := h.pool.BeginTx(ctx, options)
	if err != nil {
		return nil, err
	}
	if _, err := tx.Exec(ctx, handTimeouts, milliseconds(handLockTimeout), milliseconds(handTimeout)); err != nil {
		_ = tx.Rollback(context.WithoutCancel(ctx))
		return nil, err
	}
	return tx, nil
}

// attempted names what an error came of. A character that the database's
// encoding does not have is an error of the payload, in the field named.
func attempted(what, field string, err error) error {
	if postgres.SQLState(err) == "22P05" {
		return operator.InvalidRequest(field + ": a value holds a character that the database's encoding does not have")
	}
	return fmt.Errorf("%s: %w", what, err)
}

func milliseconds(d time.Duration) string { return fmt.Sprintf("%dms", d.Milliseconds()) }

// lockInTheWay tells a lock timeout, a deadlock with a program that locks in
// another order, and a conflict between transactions.
func lockInTheWay(err error) bool {
	switch postgres.SQLState(err) {
	case "55P03", "40P01", "40001":
		return true
	}
	return false
}
