package submit

import (
	"errors"
	"fmt"
	"slices"
	"time"
)

// What a request can end in beside a job. Every error of Parse and Submit
// wraps exactly one of them and begins with its text, but for the error of a
// Poster that could not begin to send, which comes as it is.
var (
	ErrPayload      = errors.New("payload")      // nothing was written or sent
	ErrRefused      = errors.New("refused")      // the key's intent forbids it; nothing was sent
	ErrRejected     = errors.New("rejected")     // by the API: now, or earlier and for good
	ErrUnanswered   = errors.New("unanswered")   // the intent is kept; asking again is safe
	ErrUnauthorized = errors.New("unauthorized") // the API key was refused; the intent is kept
	ErrDatabase     = errors.New("database")     // the intent is kept where it was written; asking again is safe
	ErrUnrecorded   = errors.New("unrecorded")   // bought, and the table refused the job's row; the key is not posted again
	ErrTwoJobs      = errors.New("two jobs")     // the API gave one key two jobs; both are followed
)

// HTTP statuses that the rules tell apart.
const (
	badRequest      = 400
	keyRefused      = 401
	requestTimeout  = 408
	conflict        = 409
	bodyTooLarge    = 413
	mediaType       = 415
	unprocessable   = 422
	tooEarly        = 425
	tooManyRequests = 429
)

// forgetful is the age from which the API may no longer know a key.
const forgetful = 24 * time.Hour

// before decides whether what the table holds forbids a request. It does not
// look whether the job is known: nothing is posted then.
func before(sub Submission, r Request) error {
	switch {
	case !equal(sub.Request, r.Video):
		return fmt.Errorf("%w: this idempotency_key was first used with another body; another order needs another key", ErrRefused)
	case sub.JobID != "":
		return nil
	case sub.State == Unrecorded:
		return fmt.Errorf("%w: this key bought a job, and neither its row nor its id could be stored: %s; it is not sent again", ErrUnrecorded, sub.LastError)
	case r.Resend:
		return nil
	case sub.State == Rejected && !retryable(sub.HTTPStatus):
		return fmt.Errorf("%w: not sent again, since the API refused it: %s; "+
			`a corrected order needs another key, "resend": true sends this one again`, ErrRejected, sub.LastError)
	case sub.Age > forgetful:
		return fmt.Errorf("%w: the intent is %.0f hours old, and the API may have forgotten the key: "+
			`look there for the job first; "resend": true posts it all the same`, ErrRefused, sub.Age.Hours())
	}
	return nil
}

func jobState(sub Submission) string {
	if sub.JobState == "" {
		return "unknown"
	}
	return sub.JobState
}

// retryable reports whether a rejection with this status is posted again when
// the same request comes again. Only a few statuses speak of the order itself;
// the others come from credits, limits, the API key, the route or a proxy. 0 is
// a rejection whose status is not known.
func retryable(status int) bool {
	switch status {
	case 0, badRequest, conflict, bodyTooLarge, mediaType, unprocessable:
		return false
	}
	return true
}

// verdict is what a post without a job means.
type verdict int

const (
	again        verdict = iota // post again in a while; without an answer at the end
	limited                     // post again in a while; rejected at the end
	rejected                    // whether for good says retryable
	unauthorized                // nobody's post would do better
	unclear                     // answered, but not with a job: for a person to see
)

func judge(f *PostError) verdict {
	switch status := f.HTTPStatus; {
	case status == keyRefused:
		return unauthorized
	case status == tooManyRequests:
		return limited
	case status == conflict && !mismatch(f):
		return again
	case status == 0 || status >= 500 || status == requestTimeout || status == tooEarly:
		return again
	case status >= 400:
		return rejected
	}
	return unclear
}

// mismatches are the values of error.code with which a 409 says that the API
// knows the key with another body.
var mismatches = []string{
	"idempotency_conflict", "idempotency_mismatch", "idempotency_key_conflict", "idempotency_key_mismatch", "idempotency_key_reused",
}

// mismatch reports whether a 409 says that the API knows the key with another
// body. Any other code, or a time to retry after, counts as a post still in
// flight: asking again with the same key and body is the harmless mistake.
func mismatch(f *PostError) bool {
	return f.RetryAfter < 0 && slices.Contains(mismatches, f.Code)
}
