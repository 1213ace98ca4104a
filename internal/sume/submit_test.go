package sume_test

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"sumepoller/internal/submit"
	"sumepoller/internal/sume"
	"sumepoller/internal/sume/sumetest"
)

const video = `{"model": "sora",  "prompt": "ein Bär <&>"}`

// refused returns err as the error of a post.
func refused(t testing.TB, err error) *submit.PostError {
	t.Helper()
	var f *submit.PostError
	if !errors.As(err, &f) {
		t.Fatalf("got error %v, want the error of a post", err)
	}
	return f
}

func TestSubmit(t *testing.T) {
	t.Parallel()
	for _, field := range []string{sumetest.IDInData, sumetest.IDInJob, sumetest.IDPlain, sumetest.IDFlat, sumetest.IDOnlyInRequest} {
		t.Run("named in "+field, func(t *testing.T) {
			t.Parallel()
			a, c := api(t, sumetest.Options{IDField: field})
			for i := range 3 {
				got, err := c.Submit(t.Context(), "order-1", []byte(video))
				if err != nil {
					t.Fatal(err)
				}
				if want := (submit.Answer{JobID: "job_bought_1", Hit: i > 0}); got != want {
					t.Errorf("post %d: got %+v, want %+v", i, got, want)
				}
			}
			s := a.Stats()
			if s.Billed != 1 || len(s.Posts) != 3 || s.Posts[0].Body != video || s.Posts[2].Key != "order-1" {
				t.Errorf("got %+v, want three posts of the same bytes and one bill", s)
			}
		})
	}
}

func TestSubmit_Errors(t *testing.T) {
	t.Parallel()
	coded := func(status int, code string) submit.PostError {
		return submit.PostError{HTTPStatus: status, Code: code, Message: http.StatusText(status), RequestID: "req_error", RetryAfter: -1}
	}
	limited := coded(429, "rate_limit_exceeded")
	limited.RetryAfter = 7 * time.Second
	window := coded(429, "rate_limit_exceeded")
	window.RetryAfter = 9 * time.Second
	for name, tt := range map[string]struct {
		fault sumetest.Fault
		want  submit.PostError
	}{
		"402":                   {sumetest.Fault{Status: 402}, coded(402, "insufficient_credits")},
		"422":                   {sumetest.Fault{Status: 422}, coded(422, "validation_error")},
		"429 with Retry-After":  {sumetest.Fault{Status: 429, Header: map[string]string{"Retry-After": "7"}}, limited},
		"429 with a window":     {sumetest.Fault{Status: 429, Header: map[string]string{"RateLimit-Remaining": "0", "RateLimit-Reset": "9"}}, window},
		"503 in html":           {sumetest.Fault{Status: 503, Body: "<html>"}, submit.PostError{HTTPStatus: 503, Reason: "http_5xx", RetryAfter: -1}},
		"error as text":         {sumetest.Fault{Status: 400, Body: `{"error":"no ` + testKey + `"}`}, submit.PostError{HTTPStatus: 400, Message: "no [key]", Reason: "http_4xx", RetryAfter: -1}},
		"redirect":              {sumetest.Fault{Status: 307, Body: "{}", Header: map[string]string{"Location": "/v1/videos"}}, submit.PostError{HTTPStatus: 307, Reason: "redirect", RetryAfter: -1}},
		"202 without an id":     {sumetest.Fault{Status: 202, Body: `{"status":"queued","request_id":""}`}, submit.PostError{HTTPStatus: 202, Reason: "no job id", RetryAfter: -1}},
		"202 with an odd id":    {sumetest.Fault{Status: 202, Body: `{"job_id":".."}`}, submit.PostError{HTTPStatus: 202, Reason: "no job id", RetryAfter: -1}},
		"202 with half an id":   {sumetest.Fault{Status: 202, Body: `{"job_id":"a\ud800"}`}, submit.PostError{HTTPStatus: 202, Reason: "no job id", RetryAfter: -1}},
		"202 in html":           {sumetest.Fault{Status: 202, Body: "<html>"}, submit.PostError{HTTPStatus: 202, Reason: "no job id", RetryAfter: -1}},
		"202 cut off":           {sumetest.Fault{Status: 202, Body: `{"job_id":"job_7"}`, Break: sumetest.BreakCut}, submit.PostError{Reason: "network body cut off", RetryAfter: -1}},
		"402 cut off":           {sumetest.Fault{Status: 402, Break: sumetest.BreakCut}, submit.PostError{Reason: "network body cut off", RetryAfter: -1}},
		"reset after the bill":  {sumetest.Fault{Break: sumetest.BreakReset, Make: true}, submit.PostError{Reason: "network connection reset", RetryAfter: -1}},
		"closed after the bill": {sumetest.Fault{Break: sumetest.BreakClose, Make: true}, submit.PostError{Reason: "network connection lost", RetryAfter: -1}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			a, c := api(t, sumetest.Options{})
			tt.fault.Times = 1
			a.SetPostFault(tt.fault)
			answer, err := c.Submit(t.Context(), "order-1", []byte(video))
			if diff := cmp.Diff(&tt.want, refused(t, err)); diff != "" || answer != (submit.Answer{}) {
				t.Error(answer, diff)
			}
			answer, err = c.Submit(t.Context(), "order-1", []byte(video))
			if err != nil || answer.JobID != "job_bought_1" {
				t.Errorf("asked again: got %+v, %v, want the job", answer, err)
			}
			if s := a.Stats(); s.Billed != 1 || len(s.Posts) != 2 {
				t.Errorf("%d billed by %d posts, want 1 by 2", s.Billed, len(s.Posts))
			}
		})
	}
}

func TestSubmit_JobIDField(t *testing.T) {
	t.Parallel()
	for body, want := range map[string]string{
		`{"data":{"job_id":"a","job":{"id":"b"},"id":"c","request_id":"d"},"job_id":"e"}`:     "a",
		`{"data":{"job":{"id":"b"},"id":"c","request_id":"d"},"job_id":"e"}`:                  "b",
		`{"data":{"id":"c","request_id":"d"},"job_id":"e"}`:                                   "c",
		`{"data":{"request_id":"d"},"job_id":"e","job":{"id":"f"},"id":"g","request_id":"h"}`: "e",
		`{"data":{"request_id":"d"},"job":{"id":"f"},"id":"g","request_id":"h"}`:              "f",
		`{"data":{"request_id":"d"},"id":"g","request_id":"h"}`:                               "g",
		`{"data":{"request_id":"d"},"request_id":"h"}`:                                        "d",
		`{"data":[],"request_id":"h"}`:                                                        "h",
		`{"job_id":null,"id":"","job":7,"request_id":"h"}`:                                    "h",
		`{"job_id":42}`:           "42",
		`{"JOB_ID":"x","id":"g"}`: "g",
	} {
		a, c := api(t, sumetest.Options{})
		a.SetPostFault(sumetest.Fault{Status: 202, Body: body})
		if got, err := c.Submit(t.Context(), "order-1", []byte(video)); err != nil || got.JobID != want {
			t.Errorf("%s: got %+v, %v, want %s", body, got, err, want)
		}
	}
}

func TestSubmit_Concurrent(t *testing.T) {
	t.Parallel()
	a, c := api(t, sumetest.Options{Latency: 50 * time.Millisecond})
	var all sync.WaitGroup
	for range 8 {
		all.Go(func() {
			got, err := c.Submit(t.Context(), "order-1", []byte(video))
			if err == nil && got.JobID == "job_bought_1" {
				return
			}
			if f := refused(t, err); f.HTTPStatus != http.StatusConflict || f.Code != sumetest.CodeInProgress {
				t.Errorf("got %+v, want the job or a conflict", *f)
			}
		})
	}
	all.Wait()
	_, err := c.Submit(t.Context(), "order-1", []byte(`{"prompt":"another"}`))
	if f := refused(t, err); f.HTTPStatus != http.StatusConflict || f.Code != sumetest.CodeMismatch {
		t.Errorf("another body: got %+v, want a conflict", *f)
	}
	if billed := a.Stats().Billed; billed != 1 {
		t.Errorf("%d billed, want 1", billed)
	}
}

func TestSubmit_KeyRotated(t *testing.T) {
	t.Parallel()
	a := sumetest.New(sumetest.Options{Keys: []string{"sk_test_newer"}})
	keys := fixedKeys{key: testKey, renew: func(context.Context, string) (string, error) { return "sk_test_newer", nil }}
	c := connectWith(t, sume.Config{BaseURL: listen(t, a), Timeout: time.Second}, keys)
	if got, err := c.Submit(t.Context(), "order-1", []byte(video)); err != nil || got.JobID == "" {
		t.Errorf("got %+v, %v, want a job", got, err)
	}
	if s := a.Stats(); len(s.Posts) != 2 || s.Refused != 1 {
		t.Errorf("%d posts, %d refused, want 2 and 1", len(s.Posts), s.Refused)
	}
}

func TestSubmit_ContextEnds(t *testing.T) {
	t.Parallel()
	a, c := api(t, sumetest.Options{})
	a.SetPostFault(sumetest.Fault{Break: sumetest.BreakHang, Make: true, Times: 1})
	ctx, cancel := context.WithTimeout(t.Context(), 500*time.Millisecond)
	defer cancel()
	_, err := c.Submit(ctx, "order-1", []byte(video))
	if f := refused(t, err); f.HTTPStatus != 0 || !strings.HasPrefix(f.Reason, "timeout") {
		t.Errorf("got %+v, want a timeout", *f)
	}
	got, err := c.Submit(t.Context(), "order-1", []byte(video))
	if err != nil || !got.Hit {
		t.Errorf("asked again: got %+v, %v, want a hit", got, err)
	}
}

func TestSubmit_InvalidKey(t *testing.T) {
	t.Parallel()
	a, c := api(t, sumetest.Options{})
	for _, key := range []string{"", " a", "a ", "a\nb", "ä", "\x00"} {
		if _, err := c.Submit(t.Context(), key, []byte(video)); err == nil || errors.As(err, new(*submit.PostError)) {
			t.Errorf("%q: got %v, want an error that nothing was sent", key, err)
		}
	}
	if posts := a.Stats().Posts; len(posts) != 0 {
		t.Errorf("posts were sent: %+v", posts)
	}
}

// Nothing of an error's code and message can be put together to a URL or the key.
func TestSubmit_Redacted(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"no credits left, buy some and/or wait 1/2 hour.":      "no credits left, buy some and/or wait 1/2 hour.",
		"see https://cdn.test/a?sig=1 now":                     "see [url] now",
		"see https:/\u200b/cdn.test/a":                         "see [url]",
		"see ht\ufefftps:\u00ad//cdn.test/a":                   "see [url]",
		"see https%3A%2F%2Fcdn.test":                           "see [url]",
		"see https%253A%252F%252Fcdn.test":                     "see [url]",
		`see https:/\\/cdn.test`:                               "see [url]",
		"see HTTPS:cdn.test":                                   "see [url]",
		"see //cdn.test/a":                                     "see [url]",
		"see \uff48ttps\uff1a\uff0f\uff0fcdn.test":             "see [url]",
		"see https:// cdn.test/a?X-Amz-Signature=1&x=2 please": "see [url] [url] please",
		"key " + testKey + " is bad":                           "key [key] is bad",
		"key sk_test_01234\u200b56789 is bad":                  "key [key] is bad",
		"key sk test 0123-456789 is bad":                       "[key]",
		"two\u2028lines\u0085of\\u0007 it":                     "two lines of it",
	} {
		for _, member := range []string{"code", "message"} {
			a := sumetest.New(sumetest.Options{})
			a.SetPostFault(sumetest.Fault{Status: 422, Body: `{"error":{"` + member + `":"` + text + `"}}`})
			_, err := connect(t, listen(t, a)).Submit(t.Context(), "order-1", []byte(`{}`))
			var f *submit.PostError
			if !errors.As(err, &f) {
				t.Fatal(err)
			}
			if got := f.Code + f.Message; got != want {
				t.Errorf("%s %q: got %q, want %q", member, text, got, want)
			}
		}
	}
}
