package sume

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"strings"

	"sumepoller/internal/poller"
	"sumepoller/internal/submit"
)

// Submit makes the paid post; see submit.Poster for its contract. Only ctx
// bounds its time: a post that was cut off may have bought the job.
func (c *Client) Submit(ctx context.Context, key string, body []byte) (submit.Answer, error) {
	if !fitsHeader(key) {
		return submit.Answer{}, errors.New("sume post: the idempotency key does not fit a header")
	}
	var (
		answer submit.Answer
		failed *submit.PostError
	)
	err := c.withKey(ctx, func(apiKey string, h http.Header) bool {
		answer, failed = c.post(ctx, key, body, apiKey, h)
		return failed != nil && failed.HTTPStatus == http.StatusUnauthorized
	})
	if failed != nil {
		return submit.Answer{}, failed
	}
	return answer, err
}

// fitsHeader reports whether the key reaches the API unchanged: a header loses
// whitespace at its ends.
func fitsHeader(key string) bool {
	foreign := func(r rune) bool { return r < ' ' || r > '~' }
	return key != "" && key == strings.TrimSpace(key) && !strings.ContainsFunc(key, foreign)
}

func (c *Client) post(ctx context.Context, key string, body []byte, apiKey string, h http.Header) (submit.Answer, *submit.PostError) {
	h = h.Clone()
	h.Set("Content-Type", "application/json")
	h.Set("Idempotency-Key", key)
	r, err := c.exchange(ctx, c.request(http.MethodPost, h, body, "videos"), 0)
	if err != nil {
		return submit.Answer{}, unanswered(ctx, err)
	}
	defer r.release()
	return r.bought(ctx, apiKey)
}

// unanswered returns the error of a post without a complete response.
func unanswered(ctx context.Context, err error) *submit.PostError {
	failed := &submit.PostError{RetryAfter: -1, Reason: "cut off"}
	var e *exchangeError
	switch {
	case errors.As(err, &e):
		failed.Reason = e.Error()
	case errors.Is(ctx.Err(), context.DeadlineExceeded):
		failed.Reason = string(poller.Timeout)
	}
	return failed
}

// bought reads a response to a post.
func (r *response) bought(ctx context.Context, apiKey string) (submit.Answer, *submit.PostError) {
	class, reason := classOf(r.status)
	if r.broken != nil {
		return submit.Answer{}, unanswered(ctx, r.broken)
	}
	isJSON := json.Valid(r.bytes())
	var body object
	if isJSON {
		body, _ = readObject(r.bytes())
	}
	if class == "" {
		if id, hit := body.purchase(); id != "" {
			return submit.Answer{JobID: id, Hit: hit}, nil
		}
		reason = "no job id"
	}
	failed := &submit.PostError{
		HTTPStatus: r.status,
		RequestID:  r.requestID(isJSON, apiKey),
		RetryAfter: retryAfter(r.header),
		Reason:     reason,
	}
	if w := window(r.header); failed.RetryAfter < 0 && w != nil && w.Remaining == 0 && w.Reset > 0 {
		failed.RetryAfter = w.Reset
	}
	failed.Code, failed.Message = body.apiError(apiKey)
	if failed.Reason == "" && failed.Code == "" {
		failed.Reason = string(class)
	}
	return submit.Answer{}, failed
}

// purchase reads the answer to an accepted post: the job's id, empty if there is
// no usable one, and whether the API had the idempotency key already.
func (o object) purchase() (jobID string, hit bool) {
	data, _ := readObject(o.get("data"))
	dataJob, _ := readObject(data.get("job"))
	job, _ := readObject(o.get("job"))
	hit = string(data.get("idempotency_hit")) == "true" || string(o.get("idempotency_hit")) == "true"
	for _, value := range [][]byte{
		data.get("job_id"), dataJob.get("id"), data.get("id"),
		o.get("job_id"), job.get("id"), o.get("id"),
		data.get("request_id"), o.get("request_id"),
	} {
		id := ""
		switch {
		case isString(value):
			id = string(unquote(value))
		case len(value) > 0 && value[0] >= '0' && value[0] <= '9': // an id of digits, sent as a number
			id = string(value)
		}
		if id == "" {
			continue
		}
		if !validID(id) || strings.ContainsRune(id, 0xFFFD) {
			id = ""
		}
		return id, hit
	}
	return "", hit
}

// apiError reads the code and message of an error's body, redacted.
func (o object) apiError(key string) (code, message string) {
	value := o.get("error")
	if isString(value) {
		return "", redact(unquote(value), key)
	}
	eachMember(value, func(name, value []byte) {
		switch {
		case !isString(value):
		case string(name) == "code":
			code = redact(unquote(value), key)
		case string(name) == "message":
			message = redact(unquote(value), key)
		}
	})
	return code, message
}
