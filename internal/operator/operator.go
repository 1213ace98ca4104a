// Package operator holds the requests that an operator sends to the poller by
// hand: backfill, inspect and stop. It parses and checks them and defines their
// answers. internal/postgres carries them out.
package operator

import (
	"context"
	"time"
)

// Modes of an operator request.
const (
	ModeBackfill = "backfill"
	ModeInspect  = "inspect"
	ModeStop     = "stop"
)

// Table is the table as operator requests use it. Each method is one
// transaction. An InvalidRequest means that the request is wrong; any other
// error means that nothing changed, unless it came from the commit. All methods
// are safe to repeat and to call concurrently. None needs the API or its key.
type Table interface {
	// Backfill makes the first hundred rows due now and each further one pace
	// later than the one before it. No row moves later and no lease is broken.
	Backfill(ctx context.Context, b Backfill, pace time.Duration) (Backfilled, error)
	// Inspect changes nothing. perDay is the daily limit; 0: none.
	Inspect(ctx context.Context, q Inspect, perDay int) (Inspection, error)
	// Stop finishes pending rows as stopped and announces them. A read in flight
	// ends as a lost lease.
	Stop(ctx context.Context, s Stop) (Stopped, error)
}

// InvalidRequest is the error of a request that is invalid because of what the
// table holds. It is one line that begins with the field. Nothing was changed.
type InvalidRequest string

func (r InvalidRequest) Error() string { return string(r) }
