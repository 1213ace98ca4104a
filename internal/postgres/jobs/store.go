// Package jobs keeps the jobs in PostgreSQL: it claims due rows under a lease,
// settles what was read, releases what was not, and counts the work that is
// waiting.
//
// Each question is one statement, in a .sql file of this directory. docs/design.md,
// "Statements and the planner", explains their form.
//
// Every write may be repeated after an error: rows are matched by their lease, so
// that a second attempt finds what the first one wrote. A statement whose
// connection fails is repeated for a few seconds. Nothing needs the state of a
// session: the statements work through a transaction pooler with
// default_query_exec_mode=exec in the URL, and every parameter has a cast for
// that mode. Only the database's clock decides what is due.
//
// Errors name what was attempted and wrap the driver's error. None holds a
// password or a connection string.
package jobs

import (
	"embed"
	"encoding/hex"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"sumepoller/internal/poller"
)

//go:embed *.sql
var files embed.FS

// Store implements poller.Queue and poller.Schedule. Its methods may be called
// concurrently. It remembers where claims begin in the due index, and the rows
// that the table refuses to change: each run needs a new Store, or Reset.
type Store struct {
	pool     *pgxpool.Pool
	progress *progress
}

var (
	_ poller.Queue    = (*Store)(nil)
	_ poller.Schedule = (*Store)(nil)
)

// New returns a store on pool. The caller closes the pool.
func New(pool *pgxpool.Pool) *Store {
	return &Store{pool: pool, progress: &progress{}}
}

// Reset prepares the store for a new run: the next claim looks at every due row.
func (s *Store) Reset() { s.progress.reset() }

// leaseText writes a lease as PostgreSQL reads a uuid.
func leaseText(id poller.LeaseID) string { return hex.EncodeToString(id[:]) }

// duration converts the unit in which statements return durations.
func duration(microseconds int64) time.Duration {
	return time.Duration(microseconds) * time.Microsecond
}
