package sume

import (
	"net/http"
	"time"
)

// Decoded is what a test sees of a decoded answer.
type Decoded struct {
	Terminal bool
	Status   string
	NextPoll time.Duration
}

// Decode decodes the answer to a read.
func Decode(body []byte, jobID string) (Decoded, error) {
	v, err := decode(body, jobID)
	return Decoded{v.terminal, v.status, interval(v.nextPoll)}, err
}

// RetryAfter reads an answer's Retry-After.
func RetryAfter(h http.Header) time.Duration { return retryAfter(h) }

// Reset reads the end of an answer's window.
func Reset(h http.Header) time.Duration { return reset(h, "Ratelimit-Reset") }

// Bounds of what an answer can ask for.
const (
	MaxWait = maxWait
	MaxBody = maxBody
	MaxWord = maxStatus
)
