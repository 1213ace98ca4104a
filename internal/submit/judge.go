package submit

import (
	"errors"
	"fmt"
	"slices"
	"time"
)

// The kinds of error of an order. Every error of Parse and Submit wraps exactly
// one of them and begins with its name, with one exception: if a Poster could
// not begin to send, its error is returned as it is.
var (
	ErrPayload      = errors.New("payload")      // an invalid order; nothing was written or sent
	ErrRefused      = errors.New("refused")      // the key's intent forbids it; nothing was sent
	ErrRejected     = errors.New("rejected")     // by the API, now or earlier and for good
	ErrUnanswered   = errors.New("unanswered")   // the intent is stored; the order can be sent again
	ErrUnauthorized = errors.New("unauthorized") // the API refused the API key; the intent is stored
	ErrDatabase     = errors.New("database")     // the order can be sent again
	ErrUnrecorded   = errors.New("unrecorded")   // bought, and the table refused the job's row; the key is not posted again
	ErrTwoJobs      = errors.New("two jobs")     // the API sold two jobs for one key; both are polled
)

// HTTP statuses with special rules.
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

// keyLifetime is the time for which the API is known to keep an idempotency
// key.
const keyLifetime = 24 * time.Hour

// checkIntent returns an error if the key's submission forbids the order.
// Whether the submission has a job already is not an error: then nothing is
// posted.
func checkIntent(sub Submission, r Request) error {
	if !equal(sub.Request, r.Video) {
		return fmt.Errorf("%w: this idempotency_key was first used with another body; another order needs another key", ErrRefused)
	}
	if sub.JobID != "" {
		return nil
	}
	if sub.State == Unrecorded {
		return fmt.Errorf("%w: this key bought a job, and neither its row nor its id could be stored: %s; it is not sent again", ErrUnrecorded, sub.LastError)
	}
	if r.Resend {
		return nil
	}
	if sub.State == Rejected && !retryable(sub.HTTPStatus) {
		return fmt.Errorf("%w: not sent again, since the API rejected it: %s; "+
			`a corrected order needs another key, "resend": true sends this one again`, ErrRejected, sub.LastError)
	}
	if sub.Age > keyLifetime {
		return fmt.Errorf("%w: the intent is %.0f hours old, and the API may have forgotten the key: "+
			`look for the job at Sume first; "resend": true sends the order again`, ErrRefused, sub.Age.Hours())
	}
	return nil
}

// retryable reports whether an order that was rejected with this status is
// posted again when it is sent again. Only a few statuses are about the order;
// the others come from credits, limits, the API key, the route or a proxy. 0 is
// a rejection whose status is not known.
func retryable(status int) bool {
	switch status {
	case 0, badRequest, conflict, bodyTooLarge, mediaType, unprocessable:
		return false
	}
	return true
}

// verdict is what to do after a post that bought no job.
type verdict int

const (
	postAgain    verdict = iota // after a pause; unanswered if the time is up
	limited                     // post again after a pause; rejected if the time is up
	rejected                    // retryable says whether for good
	unauthorized                // no post with this API key can succeed
	unclear                     // an answer without a job; a person has to look
)

func judge(e *PostError) verdict {
	switch e.HTTPStatus {
	case keyRefused:
		return unauthorized
	case tooManyRequests:
		return limited
	case 0, requestTimeout, tooEarly:
		return postAgain
	case conflict:
		if isMismatch(e) {
			return rejected
		}
		return postAgain
	}
	if e.HTTPStatus >= 500 {
		return postAgain
	}
	if e.HTTPStatus >= 400 {
		return rejected
	}
	return unclear
}

// mismatches are the values of error.code with which a 409 says that the API
// knows the key with another body.
var mismatches = []string{
	"idempotency_conflict", "idempotency_mismatch", "idempotency_key_conflict", "idempotency_key_mismatch", "idempotency_key_reused",
}

// isMismatch reports whether a 409 says that the API knows the key with another
// body. A 409 with another code, or with a time to retry after, counts as a post
// that is still in flight. If that is wrong, posting the same key and body again
// does no harm.
func isMismatch(e *PostError) bool {
	return e.RetryAfter < 0 && slices.Contains(mismatches, e.Code)
}
