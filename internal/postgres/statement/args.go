package statement

import (
	"context"
	"fmt"
	"sync"

	"github.com/jackc/pgx/v5"
)

// Args are the named arguments of a statement, as pgx.StrictNamedArgs are. They
// replace the names only the first time that a statement is sent: each time
// would add two per cent to the cost of a claim.
type Args map[string]any

// positional is a statement with $1 … and the argument names in that order.
type positional struct {
	sql   string
	names []any
}

var rewritten sync.Map // from the statement to its *positional

// RewriteQuery implements pgx.QueryRewriter.
func (a Args) RewriteQuery(ctx context.Context, conn *pgx.Conn, sql string, args []any) (string, []any, error) {
	found, ok := rewritten.Load(sql)
	if !ok {
		names := pgx.StrictNamedArgs{}
		for name := range a {
			names[name] = name
		}
		text, order, err := names.RewriteQuery(ctx, conn, sql, args)
		if err != nil {
			return "", nil, err
		}
		found, _ = rewritten.LoadOrStore(sql, &positional{text, order})
	}
	p := found.(*positional)
	values := make([]any, len(p.names))
	for i, name := range p.names {
		value, ok := a[name.(string)]
		if !ok {
			return "", nil, fmt.Errorf("no argument %s", name)
		}
		values[i] = value
	}
	return p.sql, values, nil
}
