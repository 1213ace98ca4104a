package poller

import (
	"context"
	"testing"
	"time"
)

type stubAPI func(ctx context.Context, id string) (Answer, error)

func (f stubAPI) Status(ctx context.Context, id string) (Answer, error) { return f(ctx, id) }

func TestRun_Answered(t *testing.T) {
	limited := &Window{Remaining: 0, Reset: time.Minute}
	for name, c := range map[string]struct {
		answer   Answer
		err      error
		took     time.Duration
		class    Class // of the settlement; empty with released
		released bool
		stopped  string
		kind     string // of the run error
		known    bool   // the API's limit
		blocked  time.Duration
	}{
		"a good answer":         {Answer{Status: "processing"}, nil, 0, "", false, "", "", true, 0},
		"404":                   {Answer{}, &notFound, 0, HTTP4xx, false, "", "", true, 0},
		"503":                   {Answer{}, &unavailable, 0, HTTP5xx, false, "", "", false, 0},
		"503 with headers":      {Answer{Window: limited}, &unavailable, 0, HTTP5xx, false, "", "", true, 0},
		"no answer":             {Answer{}, &noAnswer, 0, Timeout, false, "", "", false, 0},
		"cut off early":         {Answer{}, context.Canceled, 7500*time.Millisecond - 1, "", true, "", "", false, 0},
		"cut off late":          {Answer{}, context.Canceled, 7500 * time.Millisecond, Timeout, false, "", "", false, 0},
		"429":                   {Answer{}, &ReadError{Class: RateLimited, HTTPStatus: 429, RetryAfter: time.Minute}, 0, "", true, "", "", false, time.Minute},
		"401":                   {Answer{}, &keyAnswer, 0, "", true, StoppedAPIUnavailable, KindUnauthorized, true, 0},
		"no key":                {Answer{}, &ReadError{Class: Unauthorized}, 0, "", true, StoppedAPIUnavailable, KindSecret, false, 0},
		"a status without data": {Answer{}, &ReadError{Class: Malformed, HTTPStatus: 200, JSON: true}, 0, Malformed, false, "", "", true, 0},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r, l, _ := newTestRun(t, 1)
			r.minute.begin(noon)
			r.answered(noon, Job{ID: "job_1"}, l, c.answer, c.err, c.took)
			if r.minute.inFlight != 0 || !r.seeker.slotFreeAt.Equal(noon) {
				t.Errorf("%d reads in flight, slot free at %v", r.minute.inFlight, r.seeker.slotFreeAt)
			}
			if got := len(r.writer.releases) == 1; got != c.released || got == (len(r.writer.settlements) == 1) {
				t.Fatalf("released: got %v, want %v", got, c.released)
			}
			if !c.released && r.writer.settlements[0].Class != c.class {
				t.Errorf("got class %q, want %q", r.writer.settlements[0].Class, c.class)
			}
			counted := 0
			for _, n := range r.sum.Errors {
				counted += n
			}
			if want := map[string]int{"429": 1, "401": 1}[name]; counted != want {
				t.Errorf("got %v, want %d error", r.sum.Errors, want)
			}
			kind := ""
			if r.err != nil {
				kind = r.err.Kind
			}
			if r.sum.Stopped != c.stopped || kind != c.kind {
				t.Errorf("stopped %q with error %q, want %q with %q", r.sum.Stopped, kind, c.stopped, c.kind)
			}
			if blocked := max(0, r.minute.blockedUntil.Sub(noon)); r.minute.known != c.known || blocked != c.blocked {
				t.Errorf("limit known %v, blocked for %v; want %v, %v", r.minute.known, blocked, c.known, c.blocked)
			}
		})
	}
}

// A 401 is settled as the row's error only after a read that began later succeeds.
func TestRun_AnsweredClearsSuspects(t *testing.T) {
	for took, settled := range map[time.Duration]int{0: 2, time.Second: 1} {
		r, l, _ := newTestRun(t, 2)
		r.guard.answered, r.guard.accepted = true, true
		r.answered(noon, Job{ID: "job_1"}, l, Answer{}, &keyAnswer, 0)
		r.answered(noon, Job{ID: "job_2"}, l, Answer{Status: "processing"}, nil, took)
		if got := len(r.writer.settlements); got != settled {
			t.Errorf("after a read of %v: %d settlements, want %d", took, got, settled)
		}
	}
}

func TestRun_Begin(t *testing.T) {
	for name, c := range map[string]struct {
		change func(*run)
		after  time.Duration // since the claim
		unread bool
	}{
		"a lease too short":   {func(*run) {}, 15 * time.Second, true},
		"a run that stopped":  {func(r *run) { r.stop(StoppedBudget) }, 0, true},
		"a limit meanwhile":   {func(r *run) { r.minute.refused(noon, time.Minute, nil) }, 0, true},
		"a lease long enough": {func(*run) {}, 15*time.Second - 1, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r, l, _ := newTestRun(t, 1)
			r.api = stubAPI(func(context.Context, string) (Answer, error) { return Answer{}, nil })
			c.change(r)
			r.begin(noon.Add(c.after), Job{ID: "job_1", Late: 1500 * time.Millisecond}, l)
			if len(r.writer.releases) == 0 {
				<-r.events
			}
			got := len(r.writer.releases) == 1 && r.writer.releases[0].Unread
			if got != c.unread || c.unread == (r.sum.Reads == 1) || c.unread == (r.minute.inFlight == 1) || c.unread == (len(r.sum.Late) == 1) {
				t.Errorf("released %v with %d reads in flight", got, r.minute.inFlight)
			}
		})
	}
}
