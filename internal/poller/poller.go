// Package poller follows bought video jobs to their end: it claims due rows
// under a lease, reads each from the Sume API, decides what the answer means
// and settles it, until nothing is due or the time is up.
//
// The package holds the rules and the loop and imports no other package of
// this module. The table, the API and the clock of the day reach it through
// the small interfaces below, which internal/postgres and internal/sume
// implement. Durations, never instants, cross those interfaces: only the
// database's clock decides what is due.
package poller

import (
	"context"
	"strings"
	"time"
)

// States that this program gives a job beside Sume's own terminal words.
const (
	StatePending  = "pending"   // followed; the state of every row that is not finished
	StateNotFound = "not_found" // never answered, and 404 or 410 often enough
)

// LeaseID names one claim. The claimant makes it, so that a claim whose answer
// was lost can be asked again and gives the same rows.
type LeaseID [16]byte

// Job is one claimed row, as it was when it was claimed.
type Job struct {
	ID                string
	Late              time.Duration // past its due time at the claim; never negative
	Answered          bool          // an earlier read was answered in the contract's form
	ConsecutiveErrors int           // errors since the last good answer
	Failing           time.Duration // since the first of them; 0 where there is none
	NotFound          int           // answers of 404 and 410 among them
	LostLeases        int           // leases of this row that ran out unsettled, in a row
	Polls             int           // reads that got an HTTP answer
	Age               time.Duration // since created_at; 0 where the row has none
}

// ClaimRequest asks for due rows.
type ClaimRequest struct {
	Lease    LeaseID       // new for every claim, the same when one is asked again
	Limit    int           // rows wanted at most; at least 1
	For      time.Duration // how long the rows stay with the claimant
	PaceLine int           // what the day's count of reads may reach; negative: reads are not counted
}

// Claimed is what a claim brought. The rows' reads are in Day.Reads already.
type Claimed struct {
	Jobs      []Job // oldest due time first
	Day       Day
	QuotaDate string       // the UTC date whose count the reads were taken from, as Release takes it
	Refused   []WriteError // due rows that cannot be leased; no later claim of this run asks for them
}

// WriteError is a write that the table did not take: a constraint, a trigger, a
// rule or a value was in the way.
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

// Error returns the refusal in the form that last_error keeps.
func (r WriteError) Error() string {
	parts := []string{string(WriteRefused), r.Write}
	if r.SQLState == "" {
		parts = append(parts, "not kept")
	} else {
		parts = append(parts, "SQLSTATE "+r.SQLState)
	}
	if r.Object != "" {
		parts = append(parts, r.Object)
	}
	return strings.Join(parts, " ")
}

// Day tells where the database's UTC day stands.
type Day struct {
	Date    string        // as the database writes it, e.g. 2026-11-02; handed back with a release
	Elapsed time.Duration // since midnight
	Reads   int           // taken from the day's allowance so far, by all runs together
}

// Settlement records what one read came to. State decides its form: empty, the
// row stays pending and is due again after Delay; else the row is finished in
// that state.
type Settlement struct {
	JobID    string
	Lease    LeaseID
	State    string
	Delay    time.Duration // until the next read; a finished row gets it too, in case a trigger reopens it
	Backoff  time.Duration // the Delay of the error that replaces this where the table refuses it
	Polled   bool          // the read got an HTTP answer: counts in polls
	Status   string        // Sume's word, where the answer held one
	Class    Class         // of the error; empty: a good answer, which ends a streak of errors
	Error    string        // what last_error becomes; for people only. Empty exactly where Class is
	NotFound int           // answers of 404 and 410 in the streak of errors, this one included
	Final    []byte        // the terminal answer, JSON; finished rows only
}

// Release names one leased row that is given back: unread, or without an
// answer that concerns it.
type Release struct {
	JobID  string
	Lease  LeaseID
	Unread bool // its read never started: the daily quota gets it back, and the row keeps its place
}

// Outcome is how one settlement or release ended.
type Outcome int

// Outcomes of a settlement or a release.
const (
	Written   Outcome = iota // written, now or by an earlier attempt whose answer was lost
	LeaseLost                // another has the lease, or the row is finished; nothing changed
	Locked                   // the row is locked by another program; ask again in a later batch
	Refused                  // the table refused it, see Refusal; nothing is kept
	Missing                  // no such row is found
)

// Result is how one settlement or release ended.
type Result struct {
	Outcome Outcome
	State   string      // of a row that is done and not pending, as the table has it
	Error   *WriteError // with Declined; with Done where a part was left out
}

// Queue is the table as one run uses it. Its methods may be called at the same
// time. Each is safe to ask again after an error, and an error means that the
// answer is unknown: the database may have done it. A row that the table
// refuses to change is no error, and never stops the rows beside it.
type Queue interface {
	// Claim leases due rows, at most r.Limit of them.
	Claim(ctx context.Context, r ClaimRequest) (Claimed, error)
	// Settle writes a batch and announces the jobs it finished. The results
	// have the order of the batch; with an error come those of its beginning
	// that are known. A row that was declined is not claimed again.
	Settle(ctx context.Context, batch []Settlement) ([]Result, error)
	// Release makes rows due at once with nothing counted, and gives their
	// unread reads back to the date named. Rows that were read go behind all
	// others that are due.
	Release(ctx context.Context, date string, rows []Release) ([]Result, error)
}

// Schedule answers what lies ahead.
type Schedule interface {
	// NextDue returns how long until the earliest pending row can be claimed,
	// zero or less where one can be now; ok is false where there is no such
	// row. Rows under the leases named own are left out, those leased to
	// others count at their lease's end.
	NextDue(ctx context.Context, own []LeaseID) (in time.Duration, ok bool, err error)
	// Today returns where the day stands.
	Today(ctx context.Context) (Day, error)
	// Backlog counts what is waiting.
	Backlog(ctx context.Context) (Backlog, error)
}

// Backlog is the table's state in figures, for the summary and the metrics.
// Counts are exact to 100,000 rows each.
type Backlog struct {
	Pending          int
	Due              int           // pending, due and not leased
	OldestDue        time.Duration // how late the latest of them is
	Failing          int           // pending with nothing but errors for over 30 minutes
	OldestPending    time.Duration // age by created_at, else since last_polled_at
	StuckSubmissions int           // sent ten minutes ago and still without an answer, or bought and refused by the table
	ReadsToday       int
}

// Reader reads one job from the API.
type Reader interface {
	// Status reads a job. Any error is a *Fault, except where ctx was
	// cancelled for another reason than its deadline: then it wraps ctx's
	// error. Answer.Window is set, error or not, where the answer's headers
	// told the limit, and so is Answer.Age. Status never sends an id that cannot be one.
	Status(ctx context.Context, jobID string) (Answer, error)
}

// Answer is a well-formed answer to a read.
type Answer struct {
	Terminal bool
	Status   string        // Sume's word in lower case; may be empty while not terminal
	NextPoll time.Duration // as the answer asks; 0 where it names none
	Body     []byte        // the answer's JSON as received; may hold signed URLs
	Window   *Window
	Age      time.Duration // that a cache in between says it has kept the answer for; 0 where none says so
}

// Window is what RateLimit headers tell of the server's active limit.
type Window struct {
	Limit     int // 0 where not told
	Remaining int
	Reset     time.Duration // from the answer's arrival; 0 where not told
}

// Class is a kind of trouble with a read; the words are keys of the summary's
// errors and stand in last_error.
type Class string

// Classes of trouble.
const (
	HTTP5xx      Class = "http_5xx"
	HTTP4xx      Class = "http_4xx"
	Timeout      Class = "timeout"
	Network      Class = "network"
	Malformed    Class = "malformed"
	RateLimited  Class = "rate_limited"
	Unauthorized Class = "unauthorized"
	WriteRefused Class = "refused" // the table refuses to change the row
)

// ReadError is a read that brought no well-formed answer.
type ReadError struct {
	Class      Class
	HTTPStatus int           // 0 where no HTTP answer came
	RequestID  string        // as the answer told it, cleaned and cut; may be empty
	Reason     string        // a few fixed words; never a URL, key or body
	RetryAfter time.Duration // as the answer asks; negative where it does not
	JSON       bool          // the answer was JSON, whatever its status
	Connection uint64        // of a connection that was lost; reads lost with the same one share it. 0: none
}

// Error returns class, HTTP status, reason and request id: the text that
// last_error keeps.
func (f *ReadError) Error() string { return f.text() }
