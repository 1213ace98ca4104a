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

var errConnection = errors.New("connection refused")

func TestSubmit_DatabaseErrors(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		method string // that fails
		times  int
		err    error
		says   string
		posts  int
	}{
		"try":                 {"try", 1, submit.ErrDatabase, "nothing was sent", 0},
		"open":                {"open", 1, submit.ErrDatabase, "open the intent", 0},
		"keep":                {"keep", 6, nil, "", 1},
		"accept, for seconds": {"accept", 6, nil, "", 1},
		"accept, always":      {"accept", 1 << 30, submit.ErrDatabase, "job_1 is bought", 1},
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
						return errConnection
					}
					return nil
				}
				_, err := submitOrder(t, store, poster, order)
				if !errors.Is(err, tt.err) || tt.err != nil && !errors.Is(err, errConnection) {
					t.Errorf("got %v, want %v", err, tt.err)
				}
				if err != nil && (!strings.HasPrefix(err.Error(), "database: ") || !strings.Contains(err.Error(), tt.says) ||
					!strings.Contains(err.Error(), "safe to send the order again")) {
					t.Errorf("error %q does not say %q", err, tt.says)
				}
				if len(poster.sent) != tt.posts {
					t.Errorf("got %d posts, want %d", len(poster.sent), tt.posts)
				}
				store.fail = nil
				if got, err := submitOrder(t, store, poster, order); err != nil || got.JobID != "job_1" || store.sub.State != submit.Accepted {
					t.Errorf("asked again: %+v, %v", got, err)
				}
			})
		})
	}
}

// slow answers after 20 s, unless its context ends earlier.
type slow struct{ posts }

func (s *slow) Submit(ctx context.Context, key string, body []byte) (submit.Answer, error) {
	select {
	case <-time.After(20 * time.Second):
		return s.posts.Submit(ctx, key, body)
	case <-ctx.Done():
		return submit.Answer{}, &submit.PostError{Reason: "timeout", RetryAfter: -1}
	}
}

func TestSubmit_Deadline(t *testing.T) {
	t.Parallel()
	tests := map[string]struct{ timeout, took time.Duration }{
		"reserve of 3 s":    {30 * time.Second, 27 * time.Second},
		"reserve a fifth":   {10 * time.Second, 8 * time.Second},
		"no deadline given": {0, 57 * time.Second},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				ctx := t.Context()
				if tt.timeout > 0 {
					var cancel context.CancelFunc
					ctx, cancel = context.WithTimeout(ctx, tt.timeout)
					defer cancel()
				}
				store := &memory{}
				s := submit.Submitter{Store: store, Poster: &slow{}, Timeout: 15 * time.Second}
				begin := time.Now()
				_, err := s.Submit(ctx, order)
				if !errors.Is(err, submit.ErrUnanswered) {
					t.Errorf("got %v, want unanswered", err)
				}
				if took := time.Since(begin); took != tt.took {
					t.Errorf("took %v, want %v: all but the reserve", took, tt.took)
				}
				if store.sub.State != submit.Sending || store.sub.LastError != "timeout" {
					t.Errorf("submission is %s %q", store.sub.State, store.sub.LastError)
				}
			})
		})
	}
}

// A post begins only if a second is left for it.
func TestSubmit_LastPost(t *testing.T) {
	t.Parallel()
	for timeout, want := range map[time.Duration]int{
		2500 * time.Millisecond: 2, // 2 s for posts: a pause of 1 s, and a second left
		2499 * time.Millisecond: 1,
	} {
		synctest.Test(t, func(t *testing.T) {
			ctx, cancel := context.WithTimeout(t.Context(), timeout)
			defer cancel()
			poster := &posts{answers: []error{postError(503, "")}}
			s := submit.Submitter{Store: &memory{}, Poster: poster, Timeout: 15 * time.Second}
			if _, err := s.Submit(ctx, order); !errors.Is(err, submit.ErrUnanswered) || len(poster.sent) != want {
				t.Errorf("%v: got %d posts, %v; want %d", timeout, len(poster.sent), err, want)
			}
		})
	}
}

// The record outlasts the posts and ends before the deadline.
func TestSubmit_RecordDeadline(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		store := &memory{fail: func(method string) error {
			if method == "accept" {
				return errConnection
			}
			return nil
		}}
		begin := time.Now()
		if _, err := submitOrder(t, store, &posts{}, order); !errors.Is(err, submit.ErrDatabase) {
			t.Errorf("got %v, want a database error", err)
		}
		if took := time.Since(begin); took != time.Minute-600*time.Millisecond {
			t.Errorf("took %v of a minute, want all but 0.6 s", took)
		}
	})
}

// A concurrent request bought job_1 with the key and was killed before the
// record. The API sold another job to this one.
func TestSubmit_TwoJobsOneUnrecorded(t *testing.T) {
	t.Parallel()
	store := &memory{}
	_, err := submitOrder(t, store, posterFunc(func() (submit.Answer, error) {
		return submit.Answer{JobID: "job_2"}, store.Keep(t.Context(), order.Key, "job_1")
	}), order)
	if !errors.Is(err, submit.ErrTwoJobs) || store.sub.JobID != "job_1" || store.sub.State != submit.Accepted {
		t.Errorf("got %v, submission %+v; want job_1 accepted", err, store.sub)
	}
}

// The row that the table refused is inserted by another run meanwhile.
func TestSubmit_AcceptedMeanwhile(t *testing.T) {
	t.Parallel()
	store := &memory{}
	store.fail = func(method string) error {
		switch method {
		case "accept":
			return noCustomer
		case "unrecord":
			store.sub.State, store.sub.JobID, store.sub.JobState = submit.Accepted, "job_1", "pending"
		}
		return nil
	}
	if got, err := submitOrder(t, store, &posts{}, order); err != nil || got != found {
		t.Errorf("got %+v, %v; want %+v", got, err, found)
	}
}

// A table that refuses the trial row may hold the row of a concurrent request.
func TestSubmit_TrialRefused(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		concurrent bool  // another request buys the job during the trial
		findErr    error // of the second look
		want       submit.Result
		err        error
	}{
		"concurrent request": {true, nil, found, nil},
		"no other request":   {false, nil, submit.Result{}, submit.ErrDatabase},
		"database away":      {true, errConnection, submit.Result{}, submit.ErrDatabase},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			store, poster := &memory{sub: &submit.Submission{Request: order.Video, State: submit.Sending}, born: time.Now()}, &posts{}
			finds := 0
			store.fail = func(method string) error {
				switch {
				case method == "try":
					if tt.concurrent {
						store.sub.State, store.sub.JobID, store.sub.JobState = submit.Accepted, "job_1", "pending"
					}
					return noCustomer
				case method == "find":
					finds++
					if finds == 2 {
						return tt.findErr
					}
				}
				return nil
			}
			got, err := submitOrder(t, store, poster, order)
			if got != tt.want || !errors.Is(err, tt.err) {
				t.Errorf("got %+v, %v; want %+v, %v", got, err, tt.want, tt.err)
			}
			if len(poster.sent) != 0 {
				t.Errorf("got %d posts, want none", len(poster.sent))
			}
		})
	}
}

// TestSubmit_Reopen checks what the table holds while the key is posted again:
// a run that is killed then must leave an intent without an answer.
func TestSubmit_Reopen(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		holds          submit.Submission
		wantStatus     int
		wantUnanswered bool
		wantMarks      int
	}{
		"intent of a killed run": {submit.Submission{State: submit.Sending}, 0, false, 0},
		"unauthorized":           {submit.Submission{State: submit.Sending, HTTPStatus: 401}, 0, false, 1},
		"rejected":               {submit.Submission{State: submit.Rejected, HTTPStatus: 402}, 0, false, 1},
		"rejected, unanswered":   {submit.Submission{State: submit.Rejected, HTTPStatus: 402, Unanswered: true}, 0, true, 1},
		"rejected, no status":    {submit.Submission{State: submit.Rejected}, 0, false, 1},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			holds := tt.holds
			holds.Request, holds.LastError = order.Video, "earlier error"
			store := &memory{sub: &holds, born: time.Now()}
			resend := order
			resend.Resend = true
			posts := 0
			_, err := submitOrder(t, store, posterFunc(func() (submit.Answer, error) {
				posts++
				want := submit.Submission{
					State: submit.Sending, HTTPStatus: tt.wantStatus, Unanswered: tt.wantUnanswered, LastError: "earlier error", Request: order.Video,
				}
				if diff := cmp.Diff(want, *store.sub); diff != "" || store.marks != tt.wantMarks {
					t.Errorf("%d marks, want %d; submission (-want +got):\n%s", store.marks, tt.wantMarks, diff)
				}
				return submit.Answer{JobID: "job_1"}, nil
			}), resend)
			if err != nil || posts != 1 {
				t.Errorf("got %d posts, %v; want one", posts, err)
			}
		})
	}
}

func TestPostError(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		err          submit.PostError
		error, brief string
	}{
		"all fields": {
			submit.PostError{HTTPStatus: 409, Code: "conflict", Reason: "http_4xx", Message: "see https://x.test", RequestID: "req_1"},
			"http 409 conflict http_4xx see [url] request_id=req_1", "http 409 conflict http_4xx request_id=req_1",
		},
		"no fields": {submit.PostError{}, "no answer", "no answer"},
	}
	for name, tt := range tests {
		if tt.err.Error() != tt.error || tt.err.Brief() != tt.brief {
			t.Errorf("%s: got %q and %q, want %q and %q", name, tt.err.Error(), tt.err.Brief(), tt.error, tt.brief)
		}
	}
}

func TestWriteError(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		err          submit.WriteError
		error, brief string
	}{
		"all fields": {
			submit.WriteError{JobID: "job_1", SQLState: "23502", Table: "t", Column: "c", Constraint: "k", Function: "f", Message: "no\ncustomer"},
			"SQLSTATE 23502, table t, column c, constraint k, function f: no customer",
			"job_1 is bought and not recorded: SQLSTATE 23502, table t, column c, constraint k, function f; give column c a default, or drop its NOT NULL",
		},
		"SQLSTATE alone": {
			submit.WriteError{SQLState: "42501"},
			"SQLSTATE 42501",
			"SQLSTATE 42501; grant the submitter's role SELECT and INSERT on video_jobs and SELECT, INSERT and UPDATE on video_submissions; " +
				"with row-level security, create policies FOR SELECT and FOR INSERT that allow its rows",
		},
		"row not there": {
			submit.WriteError{},
			"the row was inserted without an error but is not there, or is not pending",
			"the row was inserted without an error but is not there, or is not pending; " +
				"change the trigger on video_jobs that drops, moves, renames or changes inserted rows",
		},
	}
	for name, tt := range tests {
		if tt.err.Error() != tt.error || tt.err.Brief() != tt.brief {
			t.Errorf("%s: got %q and %q, want %q and %q", name, tt.err.Error(), tt.err.Brief(), tt.error, tt.brief)
		}
	}
}

func TestSubmit_CanceledAfterPost(t *testing.T) {
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

// A concurrent identical request is accepted as job_1 during the post.
func TestSubmit_ConcurrentRequest(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		answer  submit.Answer
		err     error // of the post
		want    submit.Result
		wantErr error
	}{
		"one job":  {submit.Answer{JobID: "job_1", Hit: true}, nil, found, nil},
		"rejected": {submit.Answer{}, postError(402, "insufficient_credits"), found, nil},
		"409":      {submit.Answer{}, postError(409, "in_progress"), found, nil},
		"5xx":      {submit.Answer{}, postError(500, ""), found, nil},
		"two jobs": {submit.Answer{JobID: "job_2"}, nil, submit.Result{}, submit.ErrTwoJobs},
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
					return tt.answer, tt.err
				})
				got, err := submitOrder(t, store, poster, order)
				if got != tt.want || !errors.Is(err, tt.wantErr) {
					t.Errorf("got %+v, %v; want %+v, %v", got, err, tt.want, tt.wantErr)
				}
			})
		})
	}
}

func TestOneLine(t *testing.T) {
	t.Parallel()
	tests := map[string]struct{ field, want string }{
		"lines":                  {"a\n\tb\x00c\x7f", "a b c"},
		"URL":                    {`see "https://x.test/a?sig=1", please`, "see [url] please"},
		"300 bytes":              {strings.Repeat("x", 300), strings.Repeat("x", 300)},
		"too long":               {strings.Repeat("é", 200), strings.Repeat("é", 150) + "…"},
		"cut inside a character": {"x" + strings.Repeat("é", 200), "x" + strings.Repeat("é", 149) + "…"},
		"not UTF-8":              {"a\xffb", "a?b"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if got := submit.OneLine(tt.field); got != tt.want {
				t.Errorf("got %q, want %q", got, tt.want)
			}
		})
	}
}

var noCustomer = &submit.WriteError{
	SQLState: "23502", Table: "video_jobs", Column: "customer_id", Message: `null value in column "customer_id" violates not-null constraint`,
}

// TestSubmit_TableRefuses guards against a bug that others reported: a paid job
// whose id is lost because its row cannot be inserted.
func TestSubmit_TableRefuses(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		from  string // the first method that refuses
		err   error
		says  []string
		state string
		posts int
	}{
		"before the post": {"try", submit.ErrDatabase, []string{"nothing was sent", "SQLSTATE 23502", "column customer_id"}, "", 0},
		"after the post":  {"accept", submit.ErrUnrecorded, []string{"job_1 is bought", "SQLSTATE 23502", "column customer_id"}, submit.Unrecorded, 1},
		"the id too":      {"keep", submit.ErrUnrecorded, []string{"job_1 is bought", "could not be stored"}, submit.Sending, 1},
	}
	methods := []string{"try", "keep", "accept", "unrecord"}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				store, poster := &memory{}, &posts{}
				store.fail = func(method string) error {
					if method == tt.from || tt.from == "keep" && slices.Index(methods, method) > 0 {
						refused := *noCustomer
						return fmt.Errorf("a write: %w", &refused)
					}
					return nil
				}
				began := time.Now()
				_, err := submitOrder(t, store, poster, order)
				if !errors.Is(err, tt.err) || !errors.As(err, new(*submit.WriteError)) {
					t.Errorf("got %v, want %v", err, tt.err)
				}
				for _, says := range tt.says {
					if err != nil && !strings.Contains(err.Error(), says) {
						t.Errorf("error %q does not say %q", err, says)
					}
				}
				if took := time.Since(began); took != 0 {
					t.Errorf("took %v: it tried again what can never succeed", took)
				}
				if found, _ := store.Find(t.Context(), order.Key); found.State != tt.state {
					t.Errorf("table holds %+v, want %q", found, tt.state)
				}
				if tt.from == "accept" {
					resent := order
					resent.Resend = true
					if _, err := submitOrder(t, store, poster, resent); !errors.Is(err, submit.ErrUnrecorded) {
						t.Errorf("resent: %v", err)
					}
				}
				if len(poster.sent) != tt.posts {
					t.Errorf("%d posts, want %d", len(poster.sent), tt.posts)
				}
				store.fail = nil
				if got, err := submitOrder(t, store, poster, order); err != nil || got.JobID != "job_1" || store.sub.State != submit.Accepted {
					t.Errorf("asked again: %+v, %v", got, err)
				}
				if tt.from == "accept" && len(poster.sent) != 1 {
					t.Errorf("%d posts in the end", len(poster.sent))
				}
			})
		})
	}
}

// TestSubmit_Unanswered checks what is stored about earlier posts.
func TestSubmit_Unanswered(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		killed  bool    // an earlier run stored the intent and was killed
		answers []error // one for each time that the order is sent
		want    submit.Submission
	}{
		"killed, then 422":     {true, []error{postError(422, "")}, submit.Submission{State: submit.Rejected, HTTPStatus: 422, Unanswered: true}},
		"no answer, then 422":  {false, []error{postError(500, ""), postError(422, "")}, submit.Submission{State: submit.Rejected, HTTPStatus: 422, Unanswered: true}},
		"401, then 422":        {false, []error{postError(401, ""), postError(422, "")}, submit.Submission{State: submit.Rejected, HTTPStatus: 422}},
		"403, then 401":        {false, []error{postError(403, ""), postError(401, "")}, submit.Submission{State: submit.Sending, HTTPStatus: 401}},
		"403, then no API key": {false, []error{postError(403, ""), errSecret}, submit.Submission{State: submit.Sending}},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			store := &memory{born: time.Now()}
			if tt.killed {
				store.sub = &submit.Submission{Request: order.Video, State: submit.Sending}
			}
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
