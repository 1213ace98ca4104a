// Package submit buys one video job and records it, so that one order is paid
// for once, whatever dies on the way.
//
// The intent (an idempotency key and the request, kept to the letter) is
// written before anything is sent. What is posted is the text that the table
// gave back, with that key, so that every post of one key carries the same
// bytes. The job's row and the acceptance are one transaction. Asking again
// with the same key therefore finds the same job, wherever an earlier run
// ended; two runs at once may both post, and the API answers both with the one
// job that it bills.
//
// The package holds the rules and imports no other package of this module. The
// tables and the API reach it through Store and Poster.
package submit

import (
	"context"
	"time"
)

// States of a submission.
const (
	Sending  = "sending"  // the intent is written; the API has not answered for good
	Accepted = "accepted" // bought, and its job is followed
	Rejected = "rejected" // the API refused it; nothing was bought
)

// Poster sends the paid request.
type Poster interface {
	// Submit posts body, byte for byte, to POST /v1/videos with key as the
	// Idempotency-Key. It makes one attempt that ends with ctx; net/http may
	// repeat it on a connection that died, with the same key and bytes. After a
	// 401 it fetches the API key anew once and posts again by itself. It
	// follows no redirect.
	//
	// An answer without a usable job id is a *Fault. So is every other error
	// from the moment something may have been sent; any other error means that
	// nothing was sent, such as an API key that could not be had.
	Submit(ctx context.Context, key string, body []byte) (Answer, error)
}

// Answer is a post that the API accepted.
type Answer struct {
	JobID string // one that the status path can carry; never empty
	Hit   bool   // idempotency_hit: the API had this key already
}

// Fault is a post that brought no job.
type Fault struct {
	HTTPStatus int           // 0 where no whole answer came
	Code       string        // error.code; may be empty
	Message    string        // error.message; may be empty. Kept with the submission, never logged
	RequestID  string        // request_id; may be empty
	RetryAfter time.Duration // as the answer asks, else a used-up window's reset; negative where neither is told
	Reason     string        // a few fixed words where there is no code: timeout, no job id; never a URL, key or body
}

// Store keeps intents and what became of them. An error means that the
// database may or may not have done it; every method is safe to ask again, and
// each is one transaction that needs no more than SELECT, INSERT and UPDATE.
type Store interface {
	// Open writes the intent where its key is new, and returns what the table
	// then holds for that key.
	Open(ctx context.Context, key string, request []byte) (Submission, error)
	// Mark writes state and last error, except over an acceptance, and returns
	// what the table then holds.
	Mark(ctx context.Context, key, state, lastError string) (Submission, error)
	// Accept records that key bought jobID and gives the job a pending row
	// where it has none. A submission that another job was accepted for keeps
	// it; the job named gets its row all the same. It returns what the table
	// then holds.
	Accept(ctx context.Context, key, jobID string) (Submission, error)
}

// Submission is what the table holds for one key.
type Submission struct {
	New       bool          // written by this very call
	Request   []byte        // the text that is posted, to the letter
	State     string        // Sending, Accepted or Rejected
	JobID     string        // accepted only
	JobState  string        // state of the job's row; empty where there is none
	LastError string        // may be empty
	Age       time.Duration // since the intent was written, by the database's clock
}

// Result is the answer to a request.
type Result struct {
	JobID          string `json:"job_id"`
	State          string `json:"state"` // of the job's row, such as pending; unknown where someone deleted it
	IdempotencyHit bool   `json:"idempotency_hit"`
}
