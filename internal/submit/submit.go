// Package submit buys a video job and records it. One order is paid for once,
// wherever a run is interrupted.
//
// Before the first post, the job's row is inserted and rolled back, to see
// whether the table would accept it. Then the intent is stored (the idempotency
// key and the request, verbatim), and the request as the table returns it is
// posted with that key. So every post of one key carries the same bytes. The id
// of the bought job is stored with the submission at once, and from then on the
// key is never posted again. The job's row and the acceptance are written in
// one transaction. If the table refuses the row for good, the submission is
// unrecorded; sending the order again then only tries to record it. Two
// concurrent runs may both post: the API answers both with the one job that it
// bills.
//
// The package holds the rules. It reaches the tables and the API through Store
// and Poster.
package submit

import (
	"context"
	"time"
)

// States of a submission.
const (
	Sending    = "sending"    // the intent is stored; the API has not answered for good, or its job is not recorded yet
	Accepted   = "accepted"   // bought, and its job is polled
	Rejected   = "rejected"   // the API rejected it; nothing was bought
	Unrecorded = "unrecorded" // bought, and the table refused the job's row
)

// Poster sends the paid request.
type Poster interface {
	// Submit posts body, byte for byte, to POST /v1/videos with key as the
	// Idempotency-Key. It makes one attempt that ends with ctx; net/http may
	// repeat it after a lost connection, with the same key and bytes. After a
	// 401 it fetches the API key again once and posts again by itself. It
	// follows no redirect.
	//
	// An answer without a usable job id is a *PostError. So is every other error
	// once something may have been sent. Any other error means that nothing was
	// sent, for example because there is no API key.
	Submit(ctx context.Context, key string, body []byte) (Answer, error)
}

// Answer is a post that the API accepted.
type Answer struct {
	JobID string // usable in the path of the status request; never empty
	Hit   bool   // idempotency_hit: the API had this key already
}

// PostError is the error of a post that bought no job.
type PostError struct {
	HTTPStatus int           // 0 if there is no complete answer
	Code       string        // error.code; may be empty
	Message    string        // error.message; may be empty. Stored with the submission, never logged
	RequestID  string        // request_id; may be empty
	RetryAfter time.Duration // from the answer, else until a used-up rate limit resets; negative if neither is known
	Reason     string        // a few fixed words if there is no code: timeout, no job id; never a URL, key or body
}

// Store holds intents and their outcomes. Every method is one transaction, is
// safe to repeat, and needs no more than SELECT, INSERT and UPDATE (on
// video_jobs: SELECT and INSERT). A *WriteError means that the database did
// nothing and would refuse again. After any other error it is not known whether
// the database did it.
type Store interface {
	// Find returns the submission of a key; the zero value if there is none.
	Find(ctx context.Context, key string) (Submission, error)
	// Try makes the writes of Accept with an id that no job has, with every
	// constraint checked, and rolls them back.
	Try(ctx context.Context, key string) error
	// Open stores the intent if its key is new, and returns the key's
	// submission.
	Open(ctx context.Context, key string, request []byte) (Submission, error)
	// Mark stores an outcome unless the job is known, and returns the key's
	// submission.
	Mark(ctx context.Context, key string, outcome Outcome) (Submission, error)
	// Keep stores the id of the job that the key bought unless one is known. It
	// does not use video_jobs.
	Keep(ctx context.Context, key, jobID string) error
	// Accept gives the job a pending row if it has none, marks the submission as
	// accepted and returns it. A submission with another job keeps that job, but
	// jobID gets its row too. If the row is then not there, the error is a
	// *WriteError.
	Accept(ctx context.Context, key, jobID string) (Submission, error)
	// Unrecord stores that key bought jobID and why it has no row, unless it has
	// one by now, and returns the key's submission. An id that the table cannot
	// hold is stored as a part of the reason.
	Unrecord(ctx context.Context, key, jobID, reason string) (Submission, error)
}

// Outcome is what Mark stores: how the posts of a key ended without a job.
type Outcome struct {
	State      string // Sending or Rejected
	HTTPStatus int    // of the last answer; 0 if there is none, or a post is in flight
	Unanswered bool   // a post of this key had no answer: it may have bought the job
	LastError  string // for people only
}

// Submission is what the table holds for one key.
type Submission struct {
	New        bool          // stored by this call
	Request    []byte        // the body that is posted, verbatim
	State      string        // Sending, Accepted, Rejected or Unrecorded; empty if the key is not known
	JobID      string        // the job that the key bought; empty if it is not known
	JobState   string        // state of the job's row; empty if there is none
	HTTPStatus int           // as in Outcome
	Unanswered bool          // as in Outcome
	LastError  string        // for people only; may be empty
	Age        time.Duration // of the intent, by the database's clock
}

// Result is the answer to an order.
type Result struct {
	JobID          string `json:"job_id"`
	State          string `json:"state"` // of the job's row, such as pending; unknown if the row was deleted
	IdempotencyHit bool   `json:"idempotency_hit"`
}
