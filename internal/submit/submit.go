// Package submit buys one video job and records it, so that one order is paid
// for once, wherever it is interrupted.
//
// Before the first post the database is asked whether it would take a bought
// job's row: the same INSERT, rolled back. Then the intent (an idempotency key
// and the request, verbatim) is written, and the text that the table gave back
// is posted with that key, so that every post of one key carries the same
// bytes. The id of the bought job is kept with the submission at once, and from
// then on the key is never posted again. The job's row and the acceptance are
// one transaction. Where the table refuses the row for good, the submission is
// unrecorded; asking again with the same key tries to record it. Asking again
// therefore finds the same job, wherever an earlier run ended; two runs at once
// may both post, and the API answers both with the one job that it bills.
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
	Sending    = "sending"    // the intent is written; the API has not answered for good, or its job is not recorded yet
	Accepted   = "accepted"   // bought, and its job is followed
	Rejected   = "rejected"   // the API refused it; nothing was bought
	Unrecorded = "unrecorded" // bought, and the table refused the job's row
)

// Poster sends the paid request.
type Poster interface {
	// Submit posts body, byte for byte, to POST /v1/videos with key as the
	// Idempotency-Key. It makes one attempt that ends with ctx; net/http may
	// repeat it on a connection that died, with the same key and bytes. After a
	// 401 it fetches the API key anew once and posts again by itself. It
	// follows no redirect.
	//
	// An answer without a usable job id is a *PostError. So is every other error
	// from the moment something may have been sent; any other error means that
	// nothing was sent, such as an API key that could not be had.
	Submit(ctx context.Context, key string, body []byte) (Answer, error)
}

// Answer is a post that the API accepted.
type Answer struct {
	JobID string // one that the status path can carry; never empty
	Hit   bool   // idempotency_hit: the API had this key already
}

// PostError is a post that brought no job.
type PostError struct {
	HTTPStatus int           // 0 where no whole answer came
	Code       string        // error.code; may be empty
	Message    string        // error.message; may be empty. Kept with the submission, never logged
	RequestID  string        // request_id; may be empty
	RetryAfter time.Duration // as the answer asks, else a used-up window's reset; negative where neither is told
	Reason     string        // a few fixed words where there is no code: timeout, no job id; never a URL, key or body
}

// Store keeps intents and their outcomes. Every method is safe to ask again,
// and each is one transaction that needs no more than SELECT, INSERT and UPDATE,
// on video_jobs no more than SELECT and INSERT. A *WriteError means that the
// database did nothing and would refuse again; any other error means that it may
// or may not have done it.
type Store interface {
	// Find returns what the table holds for a key; the zero value where it holds
	// nothing.
	Find(ctx context.Context, key string) (Submission, error)
	// Try makes the writes of Accept with an id that no job has, with every
	// constraint checked, and rolls them back.
	Try(ctx context.Context, key string) error
	// Open writes the intent where its key is new, and returns what the table
	// then holds for that key.
	Open(ctx context.Context, key string, request []byte) (Submission, error)
	// Mark writes an outcome, except over a known job, and returns what the table
	// then holds.
	Mark(ctx context.Context, key string, outcome Outcome) (Submission, error)
	// Keep writes the id of the job that key bought, where none is known yet. It
	// needs nothing of video_jobs.
	Keep(ctx context.Context, key, jobID string) error
	// Accept gives the job a pending row where it has none and, once the row is
	// there, marks the submission as accepted. A submission that knows another
	// job keeps it; the job named gets its row all the same. It returns what the
	// table then holds. A row that is not there afterwards is a *WriteError.
	Accept(ctx context.Context, key, jobID string) (Submission, error)
	// Unrecord writes that key bought jobID and why it has no row, unless it has
	// one by now, and returns what the table then holds. An id that the table
	// cannot hold is kept within the reason.
	Unrecord(ctx context.Context, key, jobID, reason string) (Submission, error)
}

// Outcome is what Mark writes: how the posts of a key ended without a job.
type Outcome struct {
	State      string // Sending or Rejected
	HTTPStatus int    // of the last answer; 0 where none came, or a post is on its way
	Unanswered bool   // a post of this key had no answer: it may have bought the job
	LastError  string // for people only
}

// Submission is what the table holds for one key.
type Submission struct {
	New        bool          // written by this very call
	Request    []byte        // the text that is posted, verbatim
	State      string        // Sending, Accepted, Rejected or Unrecorded; empty where the key is not known
	JobID      string        // the job that the key bought, where it is known
	JobState   string        // state of the job's row; empty where there is none
	HTTPStatus int           // as in Outcome
	Unanswered bool          // as in Outcome
	LastError  string        // for people only; may be empty
	Age        time.Duration // since the intent was written, by the database's clock
}

// Result is the answer to a request.
type Result struct {
	JobID          string `json:"job_id"`
	State          string `json:"state"` // of the job's row, such as pending; unknown where someone deleted it
	IdempotencyHit bool   `json:"idempotency_hit"`
}
