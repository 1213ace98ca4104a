package jobs

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/jackc/pgx/v5/pgconn"

	"sumepoller/internal/poller"
	"sumepoller/internal/postgres"
	"sumepoller/internal/postgres/statement"
)

var rewritersSQL = statement.Read(files, "rewriters")

// writeErrorOf describes an error that postgres.Refused accepts.
func writeErrorOf(jobID string, err error, write string) poller.WriteError {
	e := poller.WriteError{JobID: jobID, Write: write}
	var pg *pgconn.PgError
	if !errors.As(err, &pg) {
		return e
	}
	e.SQLState = pg.Code
	switch function := postgres.TriggerFunction(pg); {
	case pg.ConstraintName != "":
		e.Object = "constraint " + printable(pg.ConstraintName)
	case function != "":
		e.Object = "function " + printable(function)
	case pg.ColumnName != "":
		e.Object = "column " + printable(pg.ColumnName)
	}
	return e
}

// notKept describes a write that raised no error, but is not in the row.
func (s *Store) notKept(ctx context.Context, jobID, write string) poller.WriteError {
	e := poller.WriteError{JobID: jobID, Write: write}
	var names string
	if s.pool.QueryRow(ctx, rewritersSQL).Scan(&names) == nil {
		e.Object = printable(names)
	}
	return e
}

// explain adds the write error to the result of a row that did not keep a write,
// and excludes the row from further claims.
func (s *Store) explain(ctx context.Context, r *poller.Result, jobID, write string) {
	if r.Outcome != poller.Refused || r.Error != nil {
		return
	}
	e := s.notKept(ctx, jobID, write)
	r.Error = &e
	s.progress.exclude(jobID)
}

// refuse returns the result of a write that failed for this row, and excludes the
// row from further claims.
func (s *Store) refuse(jobID string, cause error, write string) poller.Result {
	s.progress.exclude(jobID)
	e := writeErrorOf(jobID, cause, write)
	return poller.Result{Outcome: poller.Refused, Error: &e}
}

// named names a batch in an error.
func named(first string, n int) string {
	first = printable(first)
	if n > 1 {
		return fmt.Sprintf("%s and %d more", first, n-1)
	}
	return first
}

// printable prepares a user's string for an error or a log: at most 80 bytes,
// without control characters.
func printable(s string) string {
	s = strings.Map(func(r rune) rune {
		if r < ' ' || r == 0x7f {
			return -1
		}
		return r
	}, s)
	if len(s) > 80 {
		s = strings.ToValidUTF8(s[:80], "") + "…"
	}
	return s
}
