package migrations

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5/pgconn"
)

// duplicateTable is the SQLSTATE of a name that another object has.
const duplicateTable = "42P07"

// awaitBuilders waits until no other session builds an index of video_jobs. It
// polls: a session that waits in the server holds a snapshot, and the builder
// would wait for that snapshot.
func awaitBuilders(ctx context.Context, db *sql.DB) error {
	for {
		var building bool
		err := db.QueryRowContext(ctx, isBuilding).Scan(&building)
		if err != nil || !building {
			return err
		}
		if err := pause(ctx, turnPause); err != nil {
			return fmt.Errorf("another session builds an index of video_jobs and did not finish in time: migrate again: %w", err)
		}
	}
}

// ensureDueIndex builds the due index if the table has none, while other programs
// write to it. It first drops what a failed build left behind.
func ensureDueIndex(ctx context.Context, db *sql.DB) error {
	if err := awaitBuilders(ctx, db); err != nil {
		return err
	}
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
	_, err = conn.ExecContext(ctx, dueIndexConcurrently)
	var pgErr *pgconn.PgError
	if errors.As(err, &pgErr) && pgErr.Code == duplicateTable {
		return errors.New("another object is named video_jobs_due_idx: ALTER INDEX video_jobs_due_idx RENAME TO another_name")
	}
	return err
}

// boundBy limits the session's statements to ctx's time: the server would continue
// them after ctx's end. They need no limit on locks: building and dropping
// concurrently wait for open transactions, but no other program waits for them.
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

// session is a connection or a transaction.
type session interface {
	ExecContext(ctx context.Context, query string, args ...any) (sql.Result, error)
	QueryRowContext(ctx context.Context, query string, args ...any) *sql.Row
}

// actAsOwner switches to the role of the table's owner, if the session's role does
// not have its rights. A transaction's end switches back.
func actAsOwner(ctx context.Context, s session) error {
	var role string
	err := s.QueryRowContext(ctx, `SELECT CASE WHEN pg_has_role(relowner, 'USAGE') THEN '' ELSE quote_ident(pg_get_userbyid(relowner)) END
  FROM pg_class WHERE oid = 'video_jobs'::regclass`).Scan(&role)
	if err != nil || role == "" {
		return err
	}
	_, err = s.ExecContext(ctx, `SET ROLE `+role)
	return err
}
