package poller

import (
	"context"
	"strconv"
	"strings"
	"time"
)

// Reader reads one job from the API.
type Reader interface {
	// Status reads a job. Any error is a *ReadError, except where ctx was
	// canceled for another reason than its deadline: then it wraps ctx's error.
	// Answer.Window and Answer.Age are set if the answer's headers have them,
	// also beside an error. Status sends nothing if jobID cannot be a job's id.
	Status(ctx context.Context, jobID string) (Answer, error)
}

// Answer is a well-formed answer to a read.
type Answer struct {
	Terminal bool
	Status   string        // the API's word in lower case; may be empty while not terminal
	NextPoll time.Duration // the interval that the answer asks for; 0 where it names none
	Body     []byte        // the answer's JSON as received; may hold signed URLs
	Window   *Window
	Age      time.Duration // how long a cache has kept the answer, by its header; 0: no cache
}

// Window is the API's limit, from the RateLimit headers of one answer.
type Window struct {
	Limit     int // 0 where not given
	Remaining int
	Reset     time.Duration // from the answer's arrival; 0 where not given
}

// Class is the kind of a read error. The words are keys of the summary's errors
// and the first word of last_error.
type Class string

// Classes of read errors. WriteRefused is the class of a write error, which is
// counted with them.
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

// ReadError is a read without a well-formed answer.
type ReadError struct {
	Class      Class
	HTTPStatus int           // 0 where no HTTP answer came
	RequestID  string        // from the answer, cleaned and cut; may be empty
	Reason     string        // a few fixed words; never a URL, key or body
	RetryAfter time.Duration // from the answer; negative where it has none
	JSON       bool          // the answer was JSON, whatever its status
	Connection uint64        // the lost connection; reads lost with the same one share it. 0: none
}

// fromAPI reports whether the API itself answered: a good answer (nil), or JSON
// that is not a gateway's error.
func (e *ReadError) fromAPI() bool { return e == nil || e.JSON && e.HTTPStatus < 500 }

// Error returns class, HTTP status, reason and request id, the form that
// last_error keeps.
func (e *ReadError) Error() string {
	parts := []string{string(e.Class)}
	if e.HTTPStatus != 0 {
		parts = append(parts, strconv.Itoa(e.HTTPStatus))
	}
	if e.Reason != "" {
		parts = append(parts, e.Reason)
	}
	if e.RequestID != "" {
		parts = append(parts, "request_id="+e.RequestID)
	}
	return strings.Join(parts, " ")
}
