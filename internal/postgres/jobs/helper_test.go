package jobs_test

import (
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"
)

// prepare prepares a statement and returns the call that executes it with these
// literals for its named arguments.
func prepare(t testing.TB, conn *pgx.Conn, name, sql string, literals map[string]string) string {
	t.Helper()
	named := pgx.StrictNamedArgs{}
	for key, literal := range literals {
		named[key] = literal
	}
	positional, args, err := named.RewriteQuery(t.Context(), conn, sql, nil)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := conn.Exec(t.Context(), `PREPARE `+name+` AS `+positional); err != nil {
		t.Fatal(err)
	}
	var values []string
	for _, arg := range args {
		values = append(values, arg.(string))
	}
	if len(values) == 0 {
		return name
	}
	return name + ` (` + strings.Join(values, ", ") + `)`
}
