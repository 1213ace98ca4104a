package main_test

import (
	"errors"
	"net/http"
	"testing"

	"github.com/google/go-cmp/cmp"

	"sumepoller/internal/submit"
	"sumepoller/internal/sume/sumetest"
)

// TestSubmit_APIAnswers sends an order, with one answer of the API, and checks
// the error and the submission. Then it sends the order again to an API that
// sells.
func TestSubmit_APIAnswers(t *testing.T) {
	t.Parallel()
	status := func(status int) sumetest.Fault { return sumetest.Fault{Status: status} }
	html := map[string]string{"Content-Type": "text/html"}
	tests := map[string]struct {
		fault sumetest.Fault
		err   error
		left  string // state, http_status and unanswered of the submission
		again error
	}{
		"402":            {status(http.StatusPaymentRequired), submit.ErrRejected, "rejected 402 f", nil},
		"422":            {status(http.StatusUnprocessableEntity), submit.ErrRejected, "rejected 422 f", submit.ErrRejected},
		"403":            {status(http.StatusForbidden), submit.ErrRejected, "rejected 403 f", nil},
		"404":            {status(http.StatusNotFound), submit.ErrRejected, "rejected 404 f", nil},
		"405":            {status(405), submit.ErrRejected, "rejected 405 f", nil},
		"407":            {status(407), submit.ErrRejected, "rejected 407 f", nil},
		"451":            {status(451), submit.ErrRejected, "rejected 451 f", nil},
		"413":            {status(413), submit.ErrRejected, "rejected 413 f", submit.ErrRejected},
		"415":            {status(415), submit.ErrRejected, "rejected 415 f", submit.ErrRejected},
		"429, for hours": {sumetest.Fault{Status: 429, Header: map[string]string{"Retry-After": "7200"}}, submit.ErrRejected, "rejected 429 f", nil},
		"401":            {status(http.StatusUnauthorized), submit.ErrUnauthorized, "sending 401 f", nil},
		"500, always":    {status(http.StatusInternalServerError), submit.ErrUnanswered, "sending 500 t", nil},
		"no answer":      {sumetest.Fault{Break: sumetest.BreakCut}, submit.ErrUnanswered, "sending - t", nil},
		"web page":       {sumetest.Fault{Body: "<!doctype html>", Header: html}, submit.ErrUnanswered, "sending 200 t", nil},
		"no job id":      {sumetest.Fault{Status: 202, Body: `{"data": {"status": "queued"}}`}, submit.ErrUnanswered, "sending 202 t", nil},
		"id of dots":     {sumetest.Fault{Status: 202, Body: `{"job_id": ".."}`}, submit.ErrUnanswered, "sending 202 t", nil},
		"redirect":       {sumetest.Fault{Status: 307, Header: map[string]string{"Location": "/v1/videos/"}}, submit.ErrUnanswered, "sending 307 t", nil},
		"URL in an answer": {
			sumetest.Fault{Status: 400, Body: `{"error": {"code": "bad", "message": "see https://sume.test/x?sig=1"}, "request_id": "req_7"}`},
			submit.ErrRejected, "rejected 400 f", submit.ErrRejected,
		},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			m := newFixture(t, sumetest.Options{})
			m.api.SetPostFault(tt.fault)
			if got, err := m.buyBriefly(t); !errors.Is(err, tt.err) {
				t.Errorf("got %+v, %v; want %v", got, err, tt.err)
			}
			left := m.rows(t, `
SELECT concat_ws(' ', state, coalesce(http_status::text, '-'), unanswered) FROM video_submissions WHERE last_error !~ '://'`)
			if diff := cmp.Diff([]string{tt.left}, left); diff != "" {
				t.Errorf("submission (-want +got):\n%s", diff)
			}
			if rows := m.rows(t, `SELECT job_id FROM video_jobs`); len(rows) != 0 {
				t.Errorf("rows %q", rows)
			}
			m.api.SetPostFault()
			sent := len(m.api.Stats().Posts)
			got, err := m.buy(t, "order-42")
			switch posts := len(m.api.Stats().Posts); {
			case !errors.Is(err, tt.again):
				t.Errorf("sent again: %+v, %v; want %v", got, err, tt.again)
			case tt.again == nil:
				m.wantSettled(t, "order-42")
			case posts != sent:
				t.Errorf("sent again: %d posts more", posts-sent)
			}
		})
	}
}

func TestSubmit_Mismatch(t *testing.T) {
	t.Parallel()
	m := newFixture(t, sumetest.Options{})
	if _, err := m.client.Submit(t.Context(), "order-42", []byte(`{"prompt": "another program's"}`)); err != nil {
		t.Fatal(err)
	}
	if got, err := m.buy(t, "order-42"); !errors.Is(err, submit.ErrRejected) {
		t.Errorf("got %+v, %v; want a rejection", got, err)
	}
}

func TestSubmit_RotatedKey(t *testing.T) {
	t.Parallel()
	m := newFixture(t, sumetest.Options{Keys: []string{"second"}})
	if _, err := m.buy(t, "order-42"); err != nil {
		t.Error(err)
	}
	m.wantSettled(t, "order-42")
	if refused := m.api.Stats().Refused; refused != 1 {
		t.Errorf("%d posts refused, want 1", refused)
	}
}

func TestSubmit_RateLimit(t *testing.T) {
	t.Parallel()
	m := newFixture(t, sumetest.Options{})
	m.api.SetPostFault(sumetest.Fault{Times: 1, Status: http.StatusTooManyRequests, Header: map[string]string{"Retry-After": "1"}})
	if _, err := m.buy(t, "order-42"); err != nil {
		t.Error(err)
	}
	m.wantSettled(t, "order-42")
}
