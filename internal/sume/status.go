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

// Status reads one job; see poller.Reader for what it returns. A refused key is
// fetched anew once and the read made again with it. Each of the two requests
// may take the configured timeout; ctx bounds them together.
func (c *Client) Status(ctx context.Context, jobID string) (poller.Answer, error) {
	if !validID(jobID) {
		return poller.Answer{}, &poller.ReadError{Class: poller.Malformed, Reason: "job id that cannot be one, not sent", RetryAfter: -1}
	}
	var (
		answer poller.Answer
		fault  error
	)
	err := c.withKey(ctx, func(key string, h http.Header) bool {
		answer, fault = c.read(ctx, jobID, key, h)
		var f *poller.ReadError
		return errors.As(fault, &f) && f.Class == poller.Unauthorized
	})
	switch {
	case err != nil && errors.Is(ctx.Err(), context.Canceled):
		return poller.Answer{}, fmt.Errorf("sume key: %w", ctx.Err())
	case err != nil && fault == nil && ctx.Err() != nil:
		return answer, &poller.ReadError{Class: poller.Timeout, Reason: "waiting for the key", RetryAfter: -1}
	case err != nil && fault == nil:
		return answer, &poller.ReadError{Class: poller.Unauthorized, Reason: "no usable key", RetryAfter: -1}
	}
	return answer, fault
}

// read makes one request for a job's status.
func (c *Client) read(ctx context.Context, jobID, key string, h http.Header) (poller.Answer, error) {
	req := &http.Request{
		Method:     http.MethodGet,
		URL:        c.endpoint("jobs", jobID, "status"),
		Host:       c.base.Host,
		Header:     h,
		Proto:      "HTTP/1.1",
		ProtoMajor: 1,
		ProtoMinor: 1,
	}
	r, err := c.exchange(ctx, req, c.timeout)
	if err != nil {
		var t *trouble
		if errors.As(err, &t) {
			return poller.Answer{}, t.fault()
		}
		return poller.Answer{}, err
	}
	defer r.release()
	return r.answer(jobID, key)
}

// answer turns a reply to a read into what it says.
func (r *reply) answer(jobID, key string) (poller.Answer, error) {
	answer := poller.Answer{Window: window(r.header), Age: age(r.header)}
	class, reason := classOf(r.status)
	if class != "" {
		return answer, r.fault(class, reason, key)
	}
	var t *trouble
	if errors.As(r.broken, &t) {
		f := r.fault(t.class, t.reason, key)
		f.Connection = t.connection
		return answer, f
	}
	if r.broken != nil {
		return answer, r.broken
	}
	v, err := decode(r.bytes(), jobID)
	if err == nil && holdsKey(v.status, key) {
		err = errWord
	}
	if err != nil {
		return answer, r.fault(poller.Malformed, err.Error(), key)
	}
	answer.Terminal, answer.Status, answer.NextPoll = v.terminal, v.status, interval(v.nextPoll)
	answer.Body = slices.Clone(r.bytes())
	return answer, nil
}

// classOf sorts an HTTP status; an empty class is one whose body decides.
func classOf(status int) (class poller.Class, reason string) {
	switch {
	case status == http.StatusUnauthorized:
		return poller.Unauthorized, ""
	case status == http.StatusTooManyRequests:
		return poller.RateLimited, ""
	case status >= 200 && status < 300:
		return "", ""
	case status >= 300 && status < 400:
		return poller.Malformed, "redirect"
	case status >= 400 && status < 500:
		return poller.HTTP4xx, ""
	case status >= 500 && status < 600:
		return poller.HTTP5xx, ""
	}
	return poller.Malformed, "unknown status"
}

func (r *reply) fault(class poller.Class, reason, key string) *poller.ReadError {
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
