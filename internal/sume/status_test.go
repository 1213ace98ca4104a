package sume_test

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"sumepoller/internal/poller"
	"sumepoller/internal/sume"
	"sumepoller/internal/sume/sumetest"
)

// Each kind of unusable answer is a read error of its class.
func TestStatus_ReadErrors(t *testing.T) {
	t.Parallel()
	const done = `{"terminal":true,"status":"completed"}`
	html := map[string]string{"Content-Type": "text/html"}
	for name, tt := range map[string]struct {
		fault sumetest.Fault
		want  poller.ReadError
	}{
		"500":                 {sumetest.Fault{Status: 500}, poller.ReadError{Class: poller.HTTP5xx, HTTPStatus: 500, RequestID: "req_error", JSON: true}},
		"502 in html":         {sumetest.Fault{Status: 502, Body: "<html>", Header: html}, poller.ReadError{Class: poller.HTTP5xx, HTTPStatus: 502}},
		"503 that says done":  {sumetest.Fault{Status: 503, Body: done}, poller.ReadError{Class: poller.HTTP5xx, HTTPStatus: 503, JSON: true}},
		"599":                 {sumetest.Fault{Status: 599, Body: "x"}, poller.ReadError{Class: poller.HTTP5xx, HTTPStatus: 599}},
		"403":                 {sumetest.Fault{Status: 403}, poller.ReadError{Class: poller.HTTP4xx, HTTPStatus: 403, RequestID: "req_error", JSON: true}},
		"404":                 {sumetest.Fault{Status: 404}, poller.ReadError{Class: poller.HTTP4xx, HTTPStatus: 404, RequestID: "req_error", JSON: true}},
		"404 in html":         {sumetest.Fault{Status: 404, Body: "<html>"}, poller.ReadError{Class: poller.HTTP4xx, HTTPStatus: 404}},
		"408":                 {sumetest.Fault{Status: 408, Body: "[]"}, poller.ReadError{Class: poller.HTTP4xx, HTTPStatus: 408, JSON: true}},
		"410":                 {sumetest.Fault{Status: 410, Body: "x"}, poller.ReadError{Class: poller.HTTP4xx, HTTPStatus: 410}},
		"425":                 {sumetest.Fault{Status: 425, Body: "x"}, poller.ReadError{Class: poller.HTTP4xx, HTTPStatus: 425}},
		"418 cut off":         {sumetest.Fault{Status: 418, Body: "{}", Break: sumetest.BreakCut}, poller.ReadError{Class: poller.HTTP4xx, HTTPStatus: 418}},
		"429":                 {sumetest.Fault{Status: 429}, poller.ReadError{Class: poller.RateLimited, HTTPStatus: 429, RequestID: "req_error", JSON: true}},
		"401":                 {sumetest.Fault{Status: 401}, poller.ReadError{Class: poller.Unauthorized, HTTPStatus: 401, RequestID: "req_error", JSON: true}},
		"301":                 {sumetest.Fault{Status: 301, Body: "x", Header: map[string]string{"Location": "/v1/jobs/job_1/status"}}, poller.ReadError{Class: poller.Malformed, HTTPStatus: 301, Reason: "redirect"}},
		"304":                 {sumetest.Fault{Status: 304}, poller.ReadError{Class: poller.Malformed, HTTPStatus: 304, Reason: "redirect"}},
		"777":                 {sumetest.Fault{Status: 777, Body: done}, poller.ReadError{Class: poller.Malformed, HTTPStatus: 777, Reason: "unknown status", JSON: true}},
		"101":                 {sumetest.Fault{Status: 101}, poller.ReadError{Class: poller.Malformed, HTTPStatus: 101, Reason: "unknown status"}},
		"204":                 {sumetest.Fault{Status: 204}, poller.ReadError{Class: poller.Malformed, HTTPStatus: 204, Reason: "not JSON"}},
		"200, empty":          {sumetest.Fault{Status: 200}, poller.ReadError{Class: poller.Malformed, HTTPStatus: 200, Reason: "not JSON"}},
		"200, html":           {sumetest.Fault{Body: "<!doctype html>", Header: html}, poller.ReadError{Class: poller.Malformed, HTTPStatus: 200, Reason: "not JSON"}},
		"200, html as JSON":   {sumetest.Fault{Body: "<!doctype html>"}, poller.ReadError{Class: poller.Malformed, HTTPStatus: 200, Reason: "not JSON"}},
		"200, byte-order":     {sumetest.Fault{Body: "\ufeff" + done}, poller.ReadError{Class: poller.Malformed, HTTPStatus: 200, Reason: "not JSON"}},
		"200, null":           {sumetest.Fault{Body: "null"}, poller.ReadError{Class: poller.Malformed, HTTPStatus: 200, Reason: "not an object", JSON: true}},
		"200, another job":    {sumetest.Fault{Body: `{"terminal":true,"status":"completed","job_id":"job_2","request_id":"req 7"}`}, poller.ReadError{Class: poller.Malformed, HTTPStatus: 200, RequestID: "req7", Reason: "answer for another job", JSON: true}},
		"200, too large":      {sumetest.Fault{Body: done, Size: sume.MaxBody + 1}, poller.ReadError{Class: poller.Malformed, HTTPStatus: 200, Reason: "too large"}},
		"200, a bomb":         {sumetest.Fault{Body: done, Size: 200 << 20, Gzip: true}, poller.ReadError{Class: poller.Malformed, HTTPStatus: 200, Reason: "too large"}},
		"200, not gzip":       {sumetest.Fault{Body: done, Header: map[string]string{"Content-Encoding": "gzip"}}, poller.ReadError{Class: poller.Malformed, HTTPStatus: 200, Reason: "broken compression"}},
		"200, cut, length":    {sumetest.Fault{Body: done, Break: sumetest.BreakCut}, poller.ReadError{Class: poller.Network, HTTPStatus: 200, Reason: "body cut off"}},
		"200, cut, chunks":    {sumetest.Fault{Body: done, Break: sumetest.BreakChunked}, poller.ReadError{Class: poller.Network, HTTPStatus: 200, Reason: "body cut off"}},
		"200, cut, no length": {sumetest.Fault{Body: done, Break: sumetest.BreakNoLength}, poller.ReadError{Class: poller.Malformed, HTTPStatus: 200, Reason: "not JSON"}},
		"reset":               {sumetest.Fault{Break: sumetest.BreakReset}, poller.ReadError{Class: poller.Network, Reason: "connection reset"}},
		"a header too long":   {sumetest.Fault{Header: map[string]string{"X-Long": strings.Repeat("x", 100<<10)}}, poller.ReadError{Class: poller.Network, Reason: "connection lost"}},
		"closed":              {sumetest.Fault{Break: sumetest.BreakClose}, poller.ReadError{Class: poller.Network, Reason: "connection lost"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			tt.want.RetryAfter = -1
			a, c := api(t, sumetest.Options{})
			a.SetFault("job_1", tt.fault)
			answer, err := c.Status(t.Context(), "job_1")
			got := fault(t, err)
			if lost := got.Class == poller.Network; lost != (got.Connection != 0) {
				t.Errorf("connection %d of %s", got.Connection, got.Class)
			}
			got.Connection = 0
			if diff := cmp.Diff(&tt.want, got); diff != "" {
				t.Error(diff)
			}
			if diff := cmp.Diff(poller.Answer{}, answer); diff != "" {
				t.Error(diff)
			}
			for _, secret := range []string{testKey, "127.0.0.1", "://", "/v1", "job_", "<", "{"} {
				if strings.Contains(err.Error(), secret) {
					t.Errorf("the error %q holds %q", err, secret)
				}
			}
			if reads := a.Stats().Reads; reads != 1 {
				t.Errorf("the server saw %d reads, want 1", reads)
			}
			a.SetFault("job_1")
			if answer, err := c.Status(t.Context(), "job_1"); err != nil || !answer.Terminal {
				t.Errorf("the next read: got %+v, %v, want the end", answer, err)
			}
		})
	}
}

func TestStatus_UntilFinished(t *testing.T) {
	t.Parallel()
	for _, flat := range []bool{false, true} {
		a, c := api(t, sumetest.Options{})
		a.AddJob("job_1", sumetest.Plan{Reads: 2, End: "failed", Hint: 7.5, Flat: flat})
		for _, want := range []poller.Answer{
			{Status: "queued", NextPoll: 7500 * time.Millisecond},
			{Status: "processing", NextPoll: 7500 * time.Millisecond},
			{Status: "failed", Terminal: true},
		} {
			got, err := c.Status(t.Context(), "job_1")
			if err != nil {
				t.Fatal(err)
			}
			if body := string(got.Body); !strings.Contains(body, `"sume_status":"`+want.Status+`"`) || !strings.HasPrefix(body, "{") || !strings.HasSuffix(body, "}") {
				t.Errorf("got body %s, want the answer as it came", body)
			}
			if got.Body = nil; !cmp.Equal(want, got) {
				t.Error(cmp.Diff(want, got))
			}
		}
	}
}

func TestStatus_CompressedOrLarge(t *testing.T) {
	t.Parallel()
	for name, f := range map[string]sumetest.Fault{
		"compressed":            {Gzip: true},
		"of the longest length": {Size: sume.MaxBody},
		"just past a buffer":    {Size: 16<<10 + 1},
		"as long as a buffer":   {Size: 16 << 10},
		"slow but in time":      {Drip: 10 * time.Microsecond},
		"labelled as text":      {Header: map[string]string{"Content-Type": "text/plain"}},
		"as 201":                {Status: http.StatusCreated, Body: `{"terminal":true,"status":"completed"}`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			a, c := api(t, sumetest.Options{})
			a.SetFault("job_1", f)
			answer, err := c.Status(t.Context(), "job_1")
			if err != nil || !answer.Terminal || answer.Status != "completed" {
				t.Fatalf("got %v, %q, %v, want completed", answer.Terminal, answer.Status, err)
			}
			if f.Size > 0 && len(answer.Body) != f.Size {
				t.Errorf("got a body of %d bytes, want %d", len(answer.Body), f.Size)
			}
		})
	}
}

func TestRequestID(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct{ body, header, want string }{
		"in the body":            {`{"request_id":"req_1"}`, "req_2", "req_1"},
		"in the header":          {`<html>`, "req_2", "req_2"},
		"odd in the body":        {`{"request_id":7}`, "req_2", "req_2"},
		"with other letters":     {`{"request_id":"r\u0000e\nq ü\u007f1"}`, "", "req1"},
		"long":                   {`{"request_id":"` + strings.Repeat("x", 500) + `"}`, "", strings.Repeat("x", 64)},
		"a signed URL":           {`{"request_id":"` + sumetest.SignedURL + `"}`, "", ""},
		"a URL, zero width":      {`{"request_id":"https:/\u200b/cdn.test/a.mp4"}`, "", ""},
		"a URL, control":         {`{"request_id":"https:\u0007//cdn.test"}`, "", ""},
		"a URL, byte order":      {`{"request_id":"ht\ufefftps://cdn.test"}`, "", ""},
		"a URL, soft hyphen":     {`{"request_id":"https:\u00ad//cdn.test"}`, "", ""},
		"a URL, escaped":         {`{"request_id":"https%3A%2F%2Fcdn.test"}`, "", ""},
		"a URL, backslash":       {`{"request_id":"https:/\\/cdn.test"}`, "", ""},
		"a URL, no slashes":      {`{"request_id":"HTTPS:cdn.test"}`, "", ""},
		"a URL, in the header":   {`<html>`, "https:/\u00ad/cdn.test", ""},
		"the key, zero width":    {`{"request_id":"sk_test_01234\u200b56789"}`, "", ""},
		"the key, taken apart":   {`{"request_id":"of:SK.test-0123_456789"}`, "sk_test_\t0123456789", ""},
		"with all it may have":   {`{"request_id":"1-67af:Req_x.9"}`, "", "1-67af:Req_x.9"},
		"the key":                {`{"request_id":"` + testKey + `"}`, "of " + testKey, ""},
		"of an object in data":   {`{"data":{"status":"queued"},"request_id":"req_1"}`, "", "req_1"},
		"nowhere, not an object": {`[]`, "", ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			a, c := api(t, sumetest.Options{})
			f := sumetest.Fault{Status: 500, Body: tt.body}
			if tt.header != "" {
				f.Header = map[string]string{"X-Request-Id": tt.header}
			}
			a.SetFault("job_1", f)
			_, err := c.Status(t.Context(), "job_1")
			if got := fault(t, err).RequestID; got != tt.want {
				t.Errorf("got %q, want %q", got, tt.want)
			}
		})
	}
}
