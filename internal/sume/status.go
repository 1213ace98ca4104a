package sume

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"

	"sumepoller/internal/poller"
)

// Status reads one job; see poller.Reader for what it returns. If the key is
// refused, it fetches the key again and repeats the read once. Each of the two
// requests has the configured timeout; ctx bounds both together.
func (c *Client) Status(ctx context.Context, jobID string) (poller.Answer, error) {
	if !validID(jobID) {
		return poller.Answer{}, &poller.ReadError{Class: poller.Malformed, Reason: "job id that cannot be one, not sent", RetryAfter: -1}
	}
	var (
		answer poller.Answer
		failed error
	)
	err := c.withKey(ctx, func(key string, h http.Header) bool {
		answer, failed = c.read(ctx, jobID, key, h)
		var read *poller.ReadError
		return errors.As(failed, &read) && read.Class == poller.Unauthorized
	})
	switch {
	case err != nil && errors.Is(ctx.Err(), context.Canceled):
		return poller.Answer{}, fmt.Errorf("sume key: %w", ctx.Err())
	case err != nil && failed == nil && ctx.Err() != nil:
		return answer, &poller.ReadError{Class: poller.Timeout, Reason: "waiting for the key", RetryAfter: -1}
	case err != nil && failed == nil:
		return answer, &poller.ReadError{Class: poller.Unauthorized, Reason: "no usable key", RetryAfter: -1}
	}
	return answer, failed
}

// read makes one request for a job's status.
func (c *Client) read(ctx context.Context, jobID, key string, h http.Header) (poller.Answer, error) {
	r, err := c.exchange(ctx, c.request(http.MethodGet, h, nil, "jobs", jobID, "status"), c.timeout)
	if err != nil {
		var e *exchangeError
		if errors.As(err, &e) {
			return poller.Answer{}, e.readError()
		}
		return poller.Answer{}, err
	}
	defer r.release()
	return r.answer(jobID, key)
}

// answer reads a response to a read.
func (r *response) answer(jobID, key string) (poller.Answer, error) {
	answer := poller.Answer{Window: window(r.header), Age: age(r.header)}
	class, reason := classOf(r.status)
	if class != "" {
		return answer, r.readError(class, reason, key)
	}
	var e *exchangeError
	if errors.As(r.broken, &e) {
		read := r.readError(e.class, e.reason, key)
		read.Connection = e.connection
		return answer, read
	}
	if r.broken != nil {
		return answer, r.broken
	}
	d, err := decode(r.bytes(), jobID)
	if err == nil && holdsKey(d.status, key) {
		err = errStatus
	}
	if err != nil {
		return answer, r.readError(poller.Malformed, err.Error(), key)
	}
	answer.Terminal, answer.Status, answer.NextPoll = d.terminal, d.status, interval(d.nextPoll)
	answer.Body = slices.Clone(r.bytes())
	return answer, nil
}

// classOf returns the class of an HTTP status, or an empty one if the body
// decides.
func classOf(status int) (class poller.Class, reason string) {
	switch {
	case status == http.StatusUnauthorized:
		return poller.Unauthorized, ""
	case status == http.StatusTooManyRequests:
		return poller.RateLimited, ""
	}
	switch status / 100 {
	case 2:
		return "", ""
	case 3:
		return poller.Malformed, "redirect"
	case 4:
		return poller.HTTP4xx, ""
	case 5:
		return poller.HTTP5xx, ""
	}
	return poller.Malformed, "unknown status"
}

func (r *response) readError(class poller.Class, reason, key string) *poller.ReadError {
	isJSON := json.Valid(r.bytes())
	return &poller.ReadError{
		Class:      class,
		HTTPStatus: r.status,
		RequestID:  r.requestID(isJSON, key),
		Reason:     reason,
		RetryAfter: retryAfter(r.header),
		JSON:       isJSON,
	}
}
