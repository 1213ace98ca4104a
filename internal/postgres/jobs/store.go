// Package postgres keeps the jobs in PostgreSQL: it connects, leases due rows
// under a claim, settles what was read and counts what waits. Each question is
// one statement, written out above the method that asks it.
//
// It promises that every write may be asked again after an error: rows are
// matched by the lease they were claimed under, so that a second attempt finds
// the first one's mark. What fails with the connection is tried again inside,
// for a few seconds. Nothing here needs a session's state, so a transaction
// pooler serves with default_query_exec_mode=exec in the URL; every parameter
// is cast for that mode. Only the database's clock decides what is due.
//
// Errors say what was attempted and wrap the driver's, none holds a password
// or a connection string.
package jobs

import (
	"encoding/hex"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"sumepoller/internal/poller"
)

// Store implements poller.Queue and poller.Outlook on one pool. Its methods may
// be called at the same time. It remembers where its claims stand in the due
// index, and the rows that the table refused to change; make a new one, or call Reset, at the start of a run.
type Store struct {
	pool  *pgxpool.Pool
	claim *progress
}

var (
	_ poller.Queue    = (*Store)(nil)
	_ poller.Schedule = (*Store)(nil)
)

// NewStore returns a store over pool, which stays the caller's.
func New(pool *pgxpool.Pool) *Store {
	return &Store{pool: pool, claim: &progress{}}
}

// Reset forgets where the claims stood and which rows the table refused, so that
// the next one looks at every due row. For the start of a run.
func (s *Store) Reset() { s.claim.restart() }

// uuid writes a lease as PostgreSQL reads it.
func uuid(id poller.LeaseID) string { return hex.EncodeToString(id[:]) }

// micros counts whole microseconds, the unit in which durations cross to SQL.
func micros(d time.Duration) int64 { return d.Microseconds() }

// duration is the way back.
func duration(micros int64) time.Duration { return time.Duration(micros) * time.Microsecond }
