package poller

import (
	"strings"
	"time"
)

// States that this program gives a row, beside the API's terminal statuses.
const (
	StatePending  = "pending"   // not finished
	StateNotFound = "not_found" // never answered, and 404 or 410 often enough
)

// LeaseID names one claim. The caller makes it, so that a claim whose answer
// was lost can be repeated and returns the same rows.
type LeaseID [16]byte

// Job is one claimed row, as it was when it was claimed.
type Job struct {
	ID                string
	Late              time.Duration // past its due time at the claim; never negative
	Answered          bool          // an earlier read got a well-formed answer
	ConsecutiveErrors int           // errors since the last good answer
	Failing           time.Duration // since the first of them; 0 where there is none
	NotFound          int           // answers of 404 and 410 among these errors
	LostLeases        int           // leases in a row that expired before the row was settled
	Polls             int           // reads that got an HTTP answer
	Age               time.Duration // since created_at; 0 where the row has none
}

// Settlement records what one read found. Where State is empty, the row stays
// pending and is due again after Delay. Otherwise the row is finished in that
// state.
type Settlement struct {
	JobID    string
	Lease    LeaseID
	State    string
	Delay    time.Duration // until the next read; a finished row gets it too, in case a trigger reopens it
	Backoff  time.Duration // the Delay to use where the table refuses this settlement
	Polled   bool          // the read got an HTTP answer: counts in polls
	Status   string        // the API's word, where the answer had one
	Class    Class         // of the read error; empty: a good answer, which ends a streak of errors
	Error    string        // for last_error, read by people only; empty exactly where Class is
	NotFound int           // answers of 404 and 410 in the streak of errors, this one included
	Final    []byte        // the terminal answer, JSON; finished rows only
}

// Release names a leased row to release: it was not read, or its answer was
// about all rows.
type Release struct {
	JobID  string
	Lease  LeaseID
	Unread bool // its read never started: the read goes back to the daily quota, and the row keeps its place
}

// Outcome is how one settlement or release ended.
type Outcome int

// Outcomes of a settlement or a release.
const (
	Written   Outcome = iota // written, now or by an earlier attempt whose answer was lost
	LeaseLost                // another run has the lease, or the row is finished; nothing changed
	Locked                   // another program holds a lock on the row; try again in a later batch
	Refused                  // the table refused it, see Result.Error; nothing changed
	Missing                  // there is no such row
)

// Result is how one settlement or release ended.
type Result struct {
	Outcome Outcome
	State   string      // of a row that is Written and not pending, as the table has it
	Error   *WriteError // set with Refused, and with Written where a part was left out
}

// WriteError is a write that the table refused: because of a constraint, a
// trigger, a rule or a value.
type WriteError struct {
	JobID    string
	SQLState string // empty: no error, but the row did not keep what was written
	Object   string // the constraint, column or trigger function that refused; may be empty
	Write    string // what was refused: one of the Write constants
}

// Writes that a table can refuse.
const (
	WriteClaim        = "claim"
	WriteSettle       = "settle"
	WriteRelease      = "release"
	WriteFinalStatus  = "final_status" // the job was finished without its terminal answer
	WriteAnnouncement = "announcement" // the job was finished without NOTIFY
)

// Error returns the write error in the form that last_error keeps.
func (e WriteError) Error() string {
	parts := []string{string(WriteRefused), e.Write}
	if e.SQLState == "" {
		parts = append(parts, "not kept")
	} else {
		parts = append(parts, "SQLSTATE "+e.SQLState)
	}
	if e.Object != "" {
		parts = append(parts, e.Object)
	}
	return strings.Join(parts, " ")
}
