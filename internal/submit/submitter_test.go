package submit_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"sumepoller/internal/submit"
)

var order = submit.Request{Key: "order-42", Video: []byte(`{"prompt": "a", "n": 1.0}`)}

// submitOrder submits r with a deadline in a minute.
func submitOrder(t *testing.T, store submit.Store, poster submit.Poster, r submit.Request) (submit.Result, error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	s := submit.Submitter{Store: store, Poster: poster, Timeout: 15 * time.Second}
	return s.Submit(ctx, r)
}

var (
	bought = submit.Result{JobID: "job_1", State: "pending"}
	found  = submit.Result{JobID: "job_1", State: "pending", IdempotencyHit: true}
)

// TestSubmit_Answers sends one order, with the given answers of the API.
func TestSubmit_Answers(t *testing.T) {
	t.Parallel()
	const s = time.Second
	timeout := &submit.PostError{Reason: "timeout", RetryAfter: -1}
	mismatch := postError(409, "idempotency_conflict")
	mismatchWithRetry := postError(409, "idempotency_conflict")
	mismatchWithRetry.RetryAfter = 0
	mismatch.Message = "This key was used with a different body, see https://sume.test/docs?token=1"
	tests := map[string]struct {
		answers   []error
		want      submit.Result
		err       error
		state     string
		lastError string
		pauses    []time.Duration
	}{
		"job":                         {nil, bought, nil, submit.Accepted, "", nil},
		"timeouts, then a job":        {[]error{timeout, timeout, nil}, found, nil, submit.Accepted, "", []time.Duration{s, 2 * s}},
		"5xx, then a job":             {[]error{postError(503, ""), nil}, found, nil, submit.Accepted, "", []time.Duration{s}},
		"5xx always":                  {[]error{postError(500, "internal")}, submit.Result{}, submit.ErrUnanswered, submit.Sending, "http 500 internal request_id=req_1", []time.Duration{s, 2 * s, 4 * s, 8 * s, 16 * s, 16 * s}},
		"5xx with Retry-After":        {[]error{retryAfter(503, 5*s), nil}, found, nil, submit.Accepted, "", []time.Duration{5 * s}},
		"408":                         {[]error{postError(408, ""), nil}, found, nil, submit.Accepted, "", []time.Duration{s}},
		"409 in progress, then a job": {[]error{postError(409, "idempotency_in_progress"), nil}, found, nil, submit.Accepted, "", []time.Duration{s}},
		"409 with a message":          {[]error{&submit.PostError{HTTPStatus: 409, Code: "conflict", Message: "Still processing", RetryAfter: -1}, nil}, found, nil, submit.Accepted, "", []time.Duration{s}},
		"409 without a code":          {[]error{postError(409, ""), nil}, found, nil, submit.Accepted, "", []time.Duration{s}},
		"409 with Retry-After 0":      {[]error{mismatchWithRetry, nil}, found, nil, submit.Accepted, "", []time.Duration{s}},
		"mismatch":                    {[]error{mismatch}, submit.Result{}, submit.ErrRejected, submit.Rejected, "http 409 idempotency_conflict This key was used with a different body, see [url] request_id=req_1", nil},
		"400":                         {[]error{postError(400, "bad_request")}, submit.Result{}, submit.ErrRejected, submit.Rejected, "http 400 bad_request request_id=req_1", nil},
		"402":                         {[]error{postError(402, "insufficient_credits")}, submit.Result{}, submit.ErrRejected, submit.Rejected, "http 402 insufficient_credits request_id=req_1", nil},
		"422":                         {[]error{postError(422, "invalid_request")}, submit.Result{}, submit.ErrRejected, submit.Rejected, "http 422 invalid_request request_id=req_1", nil},
		"403":                         {[]error{postError(403, "forbidden")}, submit.Result{}, submit.ErrRejected, submit.Rejected, "http 403 forbidden request_id=req_1", nil},
		"409 with an unknown code":    {[]error{&submit.PostError{HTTPStatus: 409, Code: "conflict", Message: "This key was used with a different body", RetryAfter: -1}, nil}, found, nil, submit.Accepted, "", []time.Duration{s}},
		"409 with Retry-After":        {[]error{retryAfter(409, 2*s), nil}, found, nil, submit.Accepted, "", []time.Duration{2 * s}},
		"403 after a timeout":         {[]error{timeout, postError(403, "forbidden")}, submit.Result{}, submit.ErrRejected, submit.Rejected, "http 403 forbidden request_id=req_1; an earlier post had no answer", []time.Duration{s}},
		"429, short Retry-After":      {[]error{retryAfter(429, 20*s), nil}, found, nil, submit.Accepted, "", []time.Duration{20 * s}},
		"429, then 422":               {[]error{retryAfter(429, s), postError(422, "")}, submit.Result{}, submit.ErrRejected, submit.Rejected, "http 422 request_id=req_1", []time.Duration{s}},
		"429, long Retry-After":       {[]error{retryAfter(429, time.Hour)}, submit.Result{}, submit.ErrRejected, submit.Rejected, "http 429 request_id=req_1", nil},
		"401":                         {[]error{postError(401, "unauthorized")}, submit.Result{}, submit.ErrUnauthorized, submit.Sending, "http 401 unauthorized request_id=req_1", nil},
		"202 without a job id":        {[]error{&submit.PostError{HTTPStatus: 202, Reason: "no job id", RetryAfter: -1}}, submit.Result{}, submit.ErrUnanswered, submit.Sending, "http 202 no job id", nil},
		"redirect":                    {[]error{postError(307, "")}, submit.Result{}, submit.ErrUnanswered, submit.Sending, "http 307 request_id=req_1", nil},
		"no API key":                  {[]error{errSecret}, submit.Result{}, errSecret, submit.Sending, "", nil},
		"5xx, then no API key":        {[]error{postError(500, ""), errSecret}, submit.Result{}, errSecret, submit.Sending, "", []time.Duration{s}},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				store, poster := &memory{}, &posts{answers: tt.answers}
				got, err := submitOrder(t, store, poster, order)
				if !errors.Is(err, tt.err) || got != tt.want {
					t.Errorf("got %+v, %v; want %+v, %v", got, err, tt.want, tt.err)
				}
				if store.sub.State != tt.state || store.sub.LastError != tt.lastError {
					t.Errorf("submission is %s %q, want %s %q", store.sub.State, store.sub.LastError, tt.state, tt.lastError)
				}
				if diff := cmp.Diff(tt.pauses, poster.pauses()); diff != "" {
					t.Errorf("pauses between posts (-want +got):\n%s", diff)
				}
				if posts := fmt.Sprintf("after %d posts", len(poster.sent)); errors.Is(err, submit.ErrUnanswered) && !strings.Contains(err.Error(), posts) {
					t.Errorf("error %q does not say %q", err, posts)
				}
				for _, sent := range poster.sent {
					if sent != `order-42 {"prompt": "a", "n": 1.0}` {
						t.Errorf("posted %s", sent)
					}
				}
			})
		})
	}
}

var errSecret = errors.New("secret: arn:x does not answer")

// TestSubmit_KnownKey starts from what the table holds, with an API that would
// sell the job.
func TestSubmit_KnownKey(t *testing.T) {
	t.Parallel()
	reordered := submit.Request{Key: order.Key, Video: []byte(`{"n":1, "prompt":"a"}`)}
	other := submit.Request{Key: order.Key, Video: []byte(`{"n":2, "prompt":"a"}`)}
	resent := submit.Request{Key: order.Key, Video: order.Video, Resend: true}
	const (
		anHour = time.Hour
		aDay   = 25 * time.Hour
	)
	sub := func(state string, status int, age time.Duration) submit.Submission {
		return submit.Submission{State: state, HTTPStatus: status, Age: age, LastError: "http 999 earlier error"}
	}
	known := func(state string, age time.Duration) submit.Submission {
		return submit.Submission{State: state, JobID: "job_1", JobState: "pending", Age: age}
	}
	tests := map[string]struct {
		holds   submit.Submission
		request submit.Request
		want    submit.Result
		err     error
		says    string
		posted  bool
	}{
		"accepted":                            {known(submit.Accepted, anHour), order, found, nil, "", false},
		"accepted, other spelling":            {known(submit.Accepted, anHour), reordered, found, nil, "", false},
		"accepted long ago":                   {known(submit.Accepted, 1000*anHour), order, found, nil, "", false},
		"accepted, resend":                    {known(submit.Accepted, anHour), resent, found, nil, "", false},
		"accepted, another body":              {known(submit.Accepted, anHour), other, submit.Result{}, submit.ErrRefused, "another body", false},
		"unrecorded":                          {known(submit.Unrecorded, anHour), order, found, nil, "", false},
		"unrecorded long ago":                 {known(submit.Unrecorded, 1000*anHour), order, found, nil, "", false},
		"unrecorded, resend":                  {known(submit.Unrecorded, 1000*anHour), resent, found, nil, "", false},
		"unrecorded, another body":            {known(submit.Unrecorded, anHour), other, submit.Result{}, submit.ErrRefused, "another body", false},
		"unrecorded without an id":            {sub(submit.Unrecorded, 0, anHour), resent, submit.Result{}, submit.ErrUnrecorded, "not sent again", false},
		"bought, not recorded":                {known(submit.Sending, 1000*anHour), resent, found, nil, "", false},
		"sending":                             {sub(submit.Sending, 0, anHour), reordered, bought, nil, "", true},
		"sending, another body":               {sub(submit.Sending, 0, anHour), other, submit.Result{}, submit.ErrRefused, "another body", false},
		"sending for a day":                   {sub(submit.Sending, 0, 24*time.Hour), order, bought, nil, "", true},
		"sending for over a day":              {sub(submit.Sending, 0, aDay), order, submit.Result{}, submit.ErrRefused, `"resend": true`, false},
		"sending for over a day, resent":      {sub(submit.Sending, 0, aDay), resent, bought, nil, "", true},
		"rejected for credits":                {sub(submit.Rejected, 402, anHour), order, bought, nil, "", true},
		"rejected for the rate":               {sub(submit.Rejected, 429, anHour), order, bought, nil, "", true},
		"rejected for the rate a day ago":     {sub(submit.Rejected, 429, aDay), order, submit.Result{}, submit.ErrRefused, `"resend": true`, false},
		"rejected for its body":               {sub(submit.Rejected, 422, anHour), order, submit.Result{}, submit.ErrRejected, "earlier error", false},
		"rejected for its body, resent":       {sub(submit.Rejected, 422, anHour), resent, bought, nil, "", true},
		"rejected for its body, another body": {sub(submit.Rejected, 422, anHour), other, submit.Result{}, submit.ErrRefused, "another key", false},
		"rejected, status unknown":            {sub(submit.Rejected, 0, anHour), order, submit.Result{}, submit.ErrRejected, "not sent again", false},
	}
	for status, posted := range map[int]bool{
		400: false, 409: false, 413: false, 415: false, 422: false,
		401: true, 403: true, 404: true, 405: true, 407: true, 410: true, 451: true, 307: true,
	} {
		tt := tests["rejected for its body"]
		if posted {
			tt = tests["rejected for the rate"]
		}
		tt.holds.HTTPStatus = status
		tests[fmt.Sprintf("rejected with %d", status)] = tt
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				holds := tt.holds
				holds.Request = order.Video
				store := &memory{born: time.Now().Add(-holds.Age), sub: &holds}
				poster := &posts{}
				got, err := submitOrder(t, store, poster, tt.request)
				if !errors.Is(err, tt.err) || got != tt.want {
					t.Errorf("got %+v, %v; want %+v, %v", got, err, tt.want, tt.err)
				}
				if err != nil && !strings.Contains(err.Error(), tt.says) {
					t.Errorf("error %q does not say %q", err, tt.says)
				}
				var want []string
				if tt.posted {
					want = []string{`order-42 {"prompt": "a", "n": 1.0}`} // the stored body, whatever was sent
				}
				if diff := cmp.Diff(want, poster.sent); diff != "" {
					t.Errorf("posts (-want +got):\n%s", diff)
				}
			})
		})
	}
}
