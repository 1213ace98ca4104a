package submit

import (
	"errors"
	"fmt"
	"strings"
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
	ErrTwoJobs      = errors.New("two jobs")     // the API gave one key two jobs; both are followed
)

// HTTP statuses that the rules tell apart.
const (
	keyRefused      = 401
	paymentRequired = 402
	requestTimeout  = 408
	conflict        = 409
	tooEarly        = 425
	tooManyRequests = 429
)

// forgetful is the age from which the API may no longer know a key.
const forgetful = 24 * time.Hour

// unanswered stands in a rejection's last_error where an earlier post of the
// same key had no answer: that one may have bought the job.
const unanswered = "; an earlier post had no answer"

// before decides what the table's submission means for a request before
// anything is sent. With ok the result is the answer; with neither ok nor an
// error the request is to be posted.
func before(sub Submission, r Request) (result Result, ok bool, err error) {
	switch {
	case !equal(sub.Request, r.Video):
		return Result{}, false, fmt.Errorf("%w: this idempotency_key was first used with another body; another order needs another key", ErrRefused)
	case sub.State == Accepted:
		return Result{JobID: sub.JobID, State: jobState(sub), IdempotencyHit: true}, true, nil
	case r.Resend:
		return Result{}, false, nil
	case sub.State == Rejected && !worthwhile(statusOf(sub.LastError)):
		return Result{}, false, fmt.Errorf("%w: not sent again, since the API refused it: %s; "+
			`a corrected order needs another key, "resend": true sends this one again`, ErrRejected, sub.LastError)
	case sub.Age > forgetful:
		return Result{}, false, fmt.Errorf("%w: the intent is %.0f hours old, and the API may have forgotten the key: "+
			`look there for the job first; "resend": true posts it all the same`, ErrRefused, sub.Age.Hours())
	}
	return Result{}, false, nil
}

func jobState(sub Submission) string {
	if sub.JobState == "" {
		return "unknown"
	}
	return sub.JobState
}

// worthwhile tells whether a rejection with this status may turn out otherwise
// when the same request is sent again.
func worthwhile(status int) bool {
	return status == paymentRequired || status == tooManyRequests
}

// verdict is what a post without a job means.
type verdict int

const (
	again        verdict = iota // post again in a while; without an answer at the end
	limited                     // post again in a while; rejected at the end
	rejected                    // for good
	unauthorized                // nobody's post would do better
	unclear                     // answered, but not with a job: for a person to see
)

func judge(f *Fault) verdict {
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

// mismatch tells whether a 409 means that the API knows the key with another
// body. One that says nothing usable counts as a post still in flight, since
// asking again with the same key and body is the harmless mistake.
func mismatch(f *Fault) bool {
	has := func(text string, words ...string) bool {
		text = strings.ToLower(text)
		for _, word := range words {
			if strings.Contains(text, word) {
				return true
			}
		}
		return false
	}
	for _, text := range []string{f.Code, f.Message} {
		if has(text, "progress", "flight", "process", "in_use", "in use", "pending", "concurrent", "retry") {
			return false
		}
		if has(text, "mismatch", "different", "differs", "another", "reuse", "already used") {
			return true
		}
	}
	return f.RetryAfter < 0 && has(f.Code, "conflict")
}
