package submit_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"sumepoller/internal/submit"
)

var errGone = errors.New("connection refused")

func TestSubmitWhileTheDatabaseComesAndGoes(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		method string // that fails
		times  int
		err    error
		says   string
		posts  int
	}{
		"before the trial":                  {"try", 1, submit.ErrDatabase, "nothing was sent", 0},
		"before the intent":                 {"open", 1, submit.ErrDatabase, "open the intent", 0},
		"while the id is kept":              {"keep", 6, nil, "", 1},
		"for some seconds after the answer": {"accept", 6, nil, "", 1},
		"for ever after the answer":         {"accept", 1 << 30, submit.ErrDatabase, "job_1 is bought", 1},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				failed := 0
				store, poster := &memory{}, &posts{}
				store.fail = func(method string) error {
					if method == tt.method && failed < tt.times {
						failed++
						return errGone
					}
					return nil
				}
				_, err := ask(t, store, poster, order)
				if !errors.Is(err, tt.err) || tt.err != nil && !errors.Is(err, errGone) {
					t.Errorf("got %v, want %v", err, tt.err)
				}
				if err != nil && (!strings.HasPrefix(err.Error(), "database: ") || !strings.Contains(err.Error(), tt.says) ||
					!strings.Contains(err.Error(), "safe to ask again")) {
					t.Errorf("error %q does not say %q", err, tt.says)
				}
				if len(poster.sent) != tt.posts {
					t.Errorf("got %d posts, want %d", len(poster.sent), tt.posts)
				}
				store.fail = nil
				if got, err := ask(t, store, poster, order); err != nil || got.JobID != "job_1" || store.sub.State != submit.Accepted {
					t.Errorf("asked again: %+v, %v", got, err)
				}
			})
		})
	}
}

// slow answers after a while, however its context ends.
type slow struct{ posts }

func (s *slow) Submit(ctx context.Context, key string, body []byte) (submit.Answer, error) {
	select {
	case <-time.After(20 * time.Second):
		return s.posts.Submit(ctx, key, body)
	case <-ctx.Done():
		return submit.Answer{}, &submit.PostError{Reason: "timeout", RetryAfter: -1}
	}
}

func TestSubmitEndsBeforeItsDeadline(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
		defer cancel()
		store := &memory{}
		s := submit.Submitter{Store: store, Poster: &slow{}, Timeout: 15 * time.Second}
		begin := time.Now()
		_, err := s.Submit(ctx, order)
		if !errors.Is(err, submit.ErrUnanswered) {
			t.Errorf("got %v, want unanswered", err)
		}
		if took := time.Since(begin); took != 27*time.Second {
			t.Errorf("took %v of 30 s, want 27: the reserve is left, and no more", took)
		}
		if store.sub.State != submit.Sending || store.sub.LastError != "timeout" {
			t.Errorf("table holds %s %q", store.sub.State, store.sub.LastError)
		}
	})
}

func TestSubmitRecordsWhatItBoughtWhenCanceled(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	store := &memory{}
	s := submit.Submitter{Store: store, Poster: posterFunc(func() (submit.Answer, error) {
		cancel()
		return submit.Answer{JobID: "job_1"}, nil
	}), Timeout: time.Second}
	if got, err := s.Submit(ctx, order); err != nil || got != bought || store.sub.State != submit.Accepted {
		t.Errorf("got %+v, %v; table holds %s", got, err, store.sub.State)
	}
}

type posterFunc func() (submit.Answer, error)

func (f posterFunc) Submit(context.Context, string, []byte) (submit.Answer, error) { return f() }

func TestSubmitMeetsATwin(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		answer submit.Answer
		fault  error // what this one gets while the twin's post is accepted as job_1
		want   submit.Result
		err    error
	}{
		"both bought one job":          {submit.Answer{JobID: "job_1", Hit: true}, nil, found, nil},
		"this one is rejected":         {submit.Answer{}, fault(402, "insufficient_credits"), found, nil},
		"this one is in flight":        {submit.Answer{}, fault(409, "in_progress"), found, nil},
		"this one has no answer":       {submit.Answer{}, fault(500, ""), found, nil},
		"the API sold one to each one": {submit.Answer{JobID: "job_2"}, nil, submit.Result{}, submit.ErrTwoJobs},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				store := &memory{}
				poster := posterFunc(func() (submit.Answer, error) {
					if _, err := store.Accept(t.Context(), order.Key, "job_1"); err != nil {
						t.Error(err)
					}
					return tt.answer, tt.fault
				})
				got, err := ask(t, store, poster, order)
				if got != tt.want || !errors.Is(err, tt.err) {
					t.Errorf("got %+v, %v; want %+v, %v", got, err, tt.want, tt.err)
				}
			})
		})
	}
}

func TestCut(t *testing.T) {
	t.Parallel()
	tests := map[string]struct{ text, want string }{
		"lines":           {"a\n\tb\x00c\x7f", "a b c"},
		"a URL":           {`see "https://x.test/a?sig=1", please`, "see [url] please"},
		"too long":        {strings.Repeat("é", 200), strings.Repeat("é", 150) + "…"},
		"cut in a letter": {"x" + strings.Repeat("é", 200), "x" + strings.Repeat("é", 149) + "…"},
		"no UTF-8":        {"a\xffb", "a?b"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if got := submit.Cut(tt.text); got != tt.want {
				t.Errorf("got %q, want %q", got, tt.want)
			}
		})
	}
}

var noCustomer = &submit.WriteError{
	SQLState: "23502", Table: "video_jobs", Column: "customer_id", Message: `null value in column "customer_id" violates not-null constraint`,
}

// TestSubmit_TableRefuses guards against a public kind of bug: a paid job whose
// id is forgotten because its row cannot be inserted.
func TestSubmit_TableRefuses(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		from  string // the first method that refuses
		err   error
		says  []string
		state string
		posts int
	}{
		"from the start": {"try", submit.ErrDatabase, []string{"nothing was sent", "SQLSTATE 23502", "column customer_id"}, "", 0},
		"once posted":    {"accept", submit.ErrUnrecorded, []string{"job_1 is bought", "SQLSTATE 23502", "column customer_id"}, submit.Unrecorded, 1},
		"also the id":    {"keep", submit.ErrUnrecorded, []string{"job_1 is bought", "could not be stored"}, submit.Sending, 1},
	}
	methods := []string{"try", "keep", "accept", "unrecord"}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				store, poster := &memory{}, &posts{}
				store.fail = func(method string) error {
					if method == tt.from || tt.from == "keep" && slices.Index(methods, method) > 0 {
						refusal := *noCustomer
						return fmt.Errorf("a write: %w", &refusal)
					}
					return nil
				}
				began := time.Now()
				_, err := ask(t, store, poster, order)
				if !errors.Is(err, tt.err) || !errors.As(err, new(*submit.WriteError)) {
					t.Errorf("got %v, want %v", err, tt.err)
				}
				for _, says := range tt.says {
					if err != nil && !strings.Contains(err.Error(), says) {
						t.Errorf("error %q does not say %q", err, says)
					}
				}
				if took := time.Since(began); took != 0 {
					t.Errorf("took %v: what can never succeed was tried again", took)
				}
				if found, _ := store.Find(t.Context(), order.Key); found.State != tt.state {
					t.Errorf("table holds %+v, want %q", found, tt.state)
				}
				if tt.from == "accept" {
					resent := order
					resent.Resend = true
					if _, err := ask(t, store, poster, resent); !errors.Is(err, submit.ErrUnrecorded) {
						t.Errorf("resent: %v", err)
					}
				}
				if len(poster.sent) != tt.posts {
					t.Errorf("%d posts, want %d", len(poster.sent), tt.posts)
				}
				store.fail = nil
				if got, err := ask(t, store, poster, order); err != nil || got.JobID != "job_1" || store.sub.State != submit.Accepted {
					t.Errorf("asked again: %+v, %v", got, err)
				}
				if tt.from == "accept" && len(poster.sent) != 1 {
					t.Errorf("%d posts in the end", len(poster.sent))
				}
			})
		})
	}
}

// TestSubmit_Unanswered looks at what of earlier posts is kept as fields.
func TestSubmit_Unanswered(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		answers []error // the second one only once asked again
		want    submit.Submission
	}{
		"no answer, then 422":        {[]error{fault(500, ""), fault(422, "")}, submit.Submission{State: submit.Rejected, HTTPStatus: 422, Unanswered: true}},
		"401, then 422":              {[]error{fault(401, ""), fault(422, "")}, submit.Submission{State: submit.Rejected, HTTPStatus: 422}},
		"403, then 401":              {[]error{fault(403, ""), fault(401, "")}, submit.Submission{State: submit.Sending, HTTPStatus: 401}},
		"403, then no key to be had": {[]error{fault(403, ""), errSecret}, submit.Submission{State: submit.Sending}},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			store := &memory{}
			for _, answer := range tt.answers {
				ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond) // too little for a second post
				s := submit.Submitter{Store: store, Poster: posterFunc(func() (submit.Answer, error) { return submit.Answer{}, answer }), Timeout: time.Second}
				if _, err := s.Submit(ctx, order); err == nil {
					t.Error("no error")
				}
				cancel()
			}
			tt.want.Request = order.Video
			got := *store.sub
			got.LastError = ""
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Errorf("submission (-want +got):\n%s", diff)
			}
		})
	}
}
