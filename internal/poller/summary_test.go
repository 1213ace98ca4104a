package poller

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func TestCounts_Settled(t *testing.T) {
	for name, c := range map[string]struct {
		settlement Settlement
		state      string
		want       func(*Summary)
	}{
		"finished":    {Settlement{Polled: true}, "completed", func(s *Summary) { s.Polled, s.Finished["completed"] = 1, 1 }},
		"rescheduled": {Settlement{Polled: true}, "", func(s *Summary) { s.Polled, s.Rescheduled = 1, 1 }},
		"error":       {Settlement{Polled: true, Class: HTTP5xx}, "", func(s *Summary) { s.Polled, s.Errors[HTTP5xx] = 1, 1 }},
		"no answer":   {Settlement{Class: Timeout}, "", func(s *Summary) { s.Errors[Timeout] = 1 }},
		"not found": {Settlement{Polled: true, Class: HTTP4xx}, StateNotFound, func(s *Summary) {
			s.Polled, s.Errors[HTTP4xx], s.Finished[StateNotFound] = 1, 1, 1
		}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got, want := NewSummary("run_1", ModeScheduled), NewSummary("run_1", ModeScheduled)
			got.settled(c.settlement, c.state)
			c.want(&want)
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func TestSummary_JSON(t *testing.T) {
	s := NewSummary("run_1", ModeScheduled)
	s.counted(Backlog{Due: 7, OldestDue: 1250400 * time.Microsecond, ReadsToday: 9, Pending: 8})
	want := `{"run_id":"run_1","mode":"scheduled","claimed":0,"polled":0,"finished":{},"rescheduled":0,` +
		`"errors":{"http_4xx":0,"http_5xx":0,"malformed":0,"network":0,"rate_limited":0,"refused":0,"timeout":0,"unauthorized":0},` +
		`"released":0,"lost_leases":0,"registered":0,"reopened":0,"due_remaining":7,"oldest_due_seconds":1.25,` +
		`"reads_today":9,"stopped":"","elapsed_seconds":0}`
	if diff := cmp.Diff(want, s.JSON()); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestErrors(t *testing.T) {
	for want, err := range map[string]error{
		"http_4xx 404 request_id=req_1":                  &ReadError{Class: HTTP4xx, HTTPStatus: 404, RequestID: "req_1"},
		"malformed 200 no JSON":                          &ReadError{Class: Malformed, HTTPStatus: 200, Reason: "no JSON"},
		"timeout":                                        &ReadError{Class: Timeout},
		"refused settle SQLSTATE 23514 state_check":      WriteError{Write: WriteSettle, SQLState: "23514", Object: "state_check"},
		"refused claim not kept":                         WriteError{Write: WriteClaim},
		"database: dial one: refused; dial two: refused": &RunError{Kind: KindDatabase, Err: errors.New("dial one: refused;\n  dial two: refused")},
	} {
		if err.Error() != want {
			t.Errorf("got %q, want %q", err, want)
		}
	}
	if err := error(&RunError{Kind: KindDatabase, Err: context.Canceled}); !errors.Is(err, context.Canceled) {
		t.Error("a run error hides its cause")
	}
}

func TestReadError_FromAPI(t *testing.T) {
	for name, c := range map[string]struct {
		err  *ReadError
		want bool
	}{
		"a good answer":    {nil, true},
		"JSON":             {&ReadError{JSON: true, HTTPStatus: 499}, true},
		"JSON of a 500":    {&ReadError{JSON: true, HTTPStatus: 500}, false},
		"HTML":             {&ReadError{HTTPStatus: 404}, false},
		"no answer at all": {&ReadError{}, false},
	} {
		if got := c.err.fromAPI(); got != c.want {
			t.Errorf("%s: got %v, want %v", name, got, c.want)
		}
	}
}
