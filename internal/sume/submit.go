package sume

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"strings"

	"sumepoller/internal/poller"
	"sumepoller/internal/submit"
)

// Submit makes the paid post; see submit.Poster for its contract. It takes as
// long as ctx allows: a post that was cut off may have bought the job.
func (c *Client) Submit(ctx context.Context, key string, body []byte) (submit.Answer, error) {
	if !fitsHeader(key) {
		return submit.Answer{}, errors.New("sume post: the idempotency key does not fit a header")
	}
	var (
		answer submit.Answer
		fault  *submit.Fault
	)
	err := c.withKey(ctx, func(apiKey string, h http.Header) bool {
		answer, fault = c.post(ctx, key, body, apiKey, h)
		return fault != nil && fault.HTTPStatus == http.StatusUnauthorized
	})
	switch {
	case err != nil && fault == nil:
		return submit.Answer{}, err
	case fault != nil:
		return submit.Answer{}, fault
	}
	return answer, nil
}

// fitsHeader tells whether the key reaches the API as it is: a header loses
// blanks at its ends.
func fitsHeader(key string) bool {
	foreign := func(r rune) bool { return r < ' ' || r > '~' }
	return key != "" && key == strings.TrimSpace(key) && !strings.ContainsFunc(key, foreign)
}

func (c *Client) post(ctx context.Context, key string, body []byte, apiKey string, h http.Header) (submit.Answer, *submit.Fault) {
	header := h.Clone()
	header["Content-Type"] = []string{"application/json"}
	header["Idempotency-Key"] = []string{key}
	again := func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(body)), nil }
	first, _ := again()
	req := &http.Request{
		Method:        http.MethodPost,
		URL:           c.endpoint("videos"),
		Host:          c.base.Host,
		Header:        header,
		Body:          first,
		GetBody:       again,
		ContentLength: int64(len(body)),
		Proto:         "HTTP/1.1",
		ProtoMajor:    1,
		ProtoMinor:    1,
	}
	r, err := c.exchange(ctx, req, 0)
	if err != nil {
		return submit.Answer{}, unanswered(ctx, err)
	}
	defer r.release()
	return r.bought(ctx, apiKey)
}

// unanswered is the fault of a post without a whole answer.
func unanswered(ctx context.Context, err error) *submit.Fault {
	f := &submit.Fault{RetryAfter: -1, Reason: "cut off"}
	var t *trouble
	switch {
	case errors.As(err, &t):
		f.Reason = t.Error()
	case errors.Is(ctx.Err(), context.DeadlineExceeded):
		f.Reason = string(poller.Timeout)
	}
	return f
}

// bought turns a reply to a post into what it says.
func (r *reply) bought(ctx context.Context, apiKey string) (submit.Answer, *submit.Fault) {
	class, reason := classOf(r.status)
	if r.broken != nil {
		return submit.Answer{}, unanswered(ctx, r.broken)
	}
	isJSON := json.Valid(r.bytes())
	if class == "" {
		if id, hit := bought(r.bytes(), isJSON); id != "" {
			return submit.Answer{JobID: id, Hit: hit}, nil
		}
		reason = "no job id"
	}
	f := &submit.Fault{
		HTTPStatus: r.status,
		RequestID:  r.requestID(isJSON, apiKey),
		RetryAfter: retryAfter(r.header),
		Reason:     reason,
	}
	if w := window(r.header); f.RetryAfter < 0 && w != nil && w.Remaining == 0 && w.Reset > 0 {
		f.RetryAfter = w.Reset
	}
	if isJSON {
		f.Code, f.Message = refusal(r.bytes(), apiKey)
	}
	if f.Reason == "" && f.Code == "" {
		f.Reason = string(class)
	}
	return submit.Answer{}, f
}
