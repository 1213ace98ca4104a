// Package operator holds the requests that an operator sends to the poller by
// hand: backfill, inspect and stop. It parses and checks them and defines their
// answers. internal/postgres carries them out.
package operator

import (
	"context"
	"time"
)

// StopNote is what every answer to a stop says.
const StopNote = "following ended here only: it neither cancels at Sume nor saves money there; " +
	"a backfill with these job_ids follows them again"

// Modes of an operator request.
const (
	ModeBackfill = "backfill"
	ModeInspect  = "inspect"
	ModeStop     = "stop"
)

// StateStopped is the state of a job that a stop request has finished.
const StateStopped = "stopped"

// statePending is the state of every row that is not finished.
const statePending = "pending"

// Request is one invocation's payload, checked. The field that Mode names is
// set and no other. The zero value is no operator request.
type Request struct {
	Mode     string
	Backfill *Backfill
	Inspect  *Inspect
	Stop     *Stop
}

// Backfill brings rows back to being read: JobIDs whatever their state, new
// ones too, finished rows in States, and with Overdue pending rows in back-off.
type Backfill struct {
	JobIDs         []string // each once
	States         []string // never pending
	Overdue        bool
	CreatedAfter   *time.Time // inclusive; narrows States and Overdue
	CreatedBefore  *time.Time // exclusive; narrows States and Overdue
	Limit          int        // rows taken at most, oldest created_at first, then job_id; 0: all
	ReadsPerMinute int        // 0: as Pace works it out
	DryRun         bool       // count, change nothing
}

// Pace returns the time between two rows beyond the first hundred, from the
// payload's own rate, else from the smaller of the minute's and the day's
// limit; a limit of 0 is none. Without any it is a second.
func (b *Backfill) Pace(perMinute, perDay int) time.Duration {
	if b.ReadsPerMinute > 0 {
		return time.Minute / time.Duration(b.ReadsPerMinute)
	}
	var pace time.Duration
	if perMinute > 0 {
		pace = time.Minute / time.Duration(perMinute)
	}
	if perDay > 0 {
		pace = max(pace, 24*time.Hour/time.Duration(perDay))
	}
	if perMinute <= 0 && perDay <= 0 {
		pace = time.Second
	}
	return pace
}

// InvalidRequest is a payload that can be seen to be too much only in the table: one
// line that begins with the field at fault. Nothing was changed.
type InvalidRequest string

func (r InvalidRequest) Error() string { return string(r) }

// Backfilled counts what a backfill did, or what it would do.
type Backfilled struct {
	Registered int // rows added
	Reopened   int // existing rows changed: reopened, or made due earlier

	// Note names the states of the payload that no row is in, and the states
	// there are; empty where each has a row.
	Note string
}

// Inspect asks what is in the table.
type Inspect struct {
	JobIDs []string // rows to show beside the overview; each once
	Limit  int      // rows of each list but Jobs, at most; 0: DefaultInspectLimit
}

// Stop asks to end the following of pending rows.
type Stop struct {
	JobIDs []string // each once
}

// Table is the table as an operator's payload uses it. Each method is one
// transaction: an error means that nothing changed, unless it came from the
// commit, and a Refused that the payload is at fault. All are safe to ask
// again, and at the same time. None needs the API or its key.
type Table interface {
	// Backfill makes the first hundred rows due now and each further one pace
	// later than the one before it. No row moves later and no lease is broken.
	Backfill(ctx context.Context, b Backfill, pace time.Duration) (Backfilled, error)
	// Inspect changes nothing. perDay is the day's limit of reads; 0: none.
	Inspect(ctx context.Context, q Inspect, perDay int) (Inspection, error)
	// Stop finishes pending rows as stopped and announces them. A read under
	// way comes out lost.
	Stop(ctx context.Context, s Stop) (Stopped, error)
}

// Stopped is the answer to a stop. The caller sets RunID; Mode and Note are set.
type Stopped struct {
	RunID           string         `json:"run_id"`
	Mode            string         `json:"mode"`
	Finished        map[string]int `json:"finished"`         // stopped: how many this payload ended
	AlreadyFinished int            `json:"already_finished"` // in the table, not pending, left as they are
	Unknown         int            `json:"unknown"`          // not in the table
	Note            string         `json:"note"`
}
