package migrations

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5/pgconn"
)

// duplicateTable is the SQLSTATE of a name that is taken.
const duplicateTable = "42P07"

// indexVersion is the step that sees to the due index.
const indexVersion = 2

// dueIndexes finds the indexes that serve the claim, whatever their names: on
// next_poll_at first, of pending rows only. One that is being built by
// someone else at this moment is left out.
const dueIndexes = `SELECT format('%I.%I', n.nspname, c.relname) AS name, i.indisvalid AS valid
          FROM pg_index i
          JOIN pg_class c ON c.oid = i.indexrelid
          JOIN pg_namespace n ON n.oid = c.relnamespace
          JOIN pg_am m ON m.oid = c.relam AND m.amname = 'btree'
          JOIN pg_attribute a ON a.attrelid = i.indrelid AND a.attname = 'next_poll_at'
         WHERE i.indrelid = 'video_jobs'::regclass
           AND i.indnkeyatts = 1 AND i.indkey[0] = a.attnum
           AND pg_get_expr(i.indpred, i.indrelid) IN ('(state = ''pending''::text)', '((state)::text = ''pending''::text)')
           AND NOT EXISTS (SELECT FROM pg_stat_progress_create_index p WHERE p.index_relid = i.indexrelid)
         ORDER BY i.indexrelid`

// createDueIndex, with or without CONCURRENTLY.
const createDueIndex = `CREATE INDEX %s video_jobs_due_idx ON video_jobs (next_poll_at) WHERE state = 'pending'`

// ensureDueIndex builds the due index where the table has none, without
// stopping its writers. What a failed build left behind is dropped first.
func ensureDueIndex(ctx context.Context, db *sql.DB) error {
	conn, err := db.Conn(ctx)
	if err != nil {
		return err
	}
	defer release(conn)
	broken, found, err := findDueIndexes(ctx, conn)
	if err != nil || found && len(broken) == 0 {
		return err
	}
	if err := actAsOwner(ctx, conn); err != nil {
		return err
	}
	if err := boundBy(ctx, conn); err != nil {
		return err
	}
	for _, name := range broken {
		if _, err := conn.ExecContext(ctx, `DROP INDEX CONCURRENTLY IF EXISTS `+name); err != nil {
			return err
		}
	}
	if found {
		return nil
	}
	_, err = conn.ExecContext(ctx, fmt.Sprintf(createDueIndex, "CONCURRENTLY"))
	var pgErr *pgconn.PgError
	if errors.As(err, &pgErr) && pgErr.Code == duplicateTable {
		return errors.New("something else is named video_jobs_due_idx: ALTER INDEX video_jobs_due_idx RENAME TO another_name")
	}
	return err
}

// boundBy gives the session's statements ctx's time. Building and dropping
// concurrently wait for transactions that are open now, and nobody waits for
// them, so that they need no bound on locks; but the server would go on with
// them after ctx's end.
func boundBy(ctx context.Context, conn *sql.Conn) error {
	bound := int64(0)
	if deadline, ok := ctx.Deadline(); ok {
		bound = max(1, time.Until(deadline).Milliseconds())
	}
	_, err := conn.ExecContext(ctx, fmt.Sprintf(`SET lock_timeout = 0; SET statement_timeout = %d`, bound))
	return err
}

func findDueIndexes(ctx context.Context, conn *sql.Conn) (broken []string, found bool, err error) {
	rows, err := conn.QueryContext(ctx, dueIndexes)
	if err != nil {
		return nil, false, err
	}
	defer func() { _ = rows.Close() }()
	for rows.Next() {
		var name string
		var valid bool
		if err := rows.Scan(&name, &valid); err != nil {
			return nil, false, err
		}
		if valid {
			found = true
		} else {
			broken = append(broken, name)
		}
	}
	return broken, found, rows.Err()
}

// actAsOwner lets the session act as the table's owner where its own role has
// not the owner's rights.
func actAsOwner(ctx context.Context, conn *sql.Conn) error {
	var role string
	err := conn.QueryRowContext(ctx, `SELECT CASE WHEN pg_has_role(relowner, 'USAGE') THEN '' ELSE quote_ident(pg_get_userbyid(relowner)) END
  FROM pg_class WHERE oid = 'video_jobs'::regclass`).Scan(&role)
	if err != nil || role == "" {
		return err
	}
	_, err = conn.ExecContext(ctx, `SET ROLE `+role)
	return err
}
