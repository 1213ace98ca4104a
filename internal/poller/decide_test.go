package poller

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

var contract = Settings{
	DefaultInterval: 15 * time.Second, MinInterval: time.Second, MaxInterval: time.Hour, BackoffMax: 15 * time.Minute,
}

func TestDecide_Answer(t *testing.T) {
	body := []byte(`{"terminal":true,"sume_status":"completed"}`)
	for name, c := range map[string]struct {
		answer  Answer
		stretch time.Duration
		random  float64
		want    Settlement
	}{
		"finished": {
			answer: Answer{Terminal: true, Status: "completed", Body: body},
			want:   Settlement{State: "completed", Status: "completed", Delay: 2 * time.Minute, Final: body},
		},
		"interval of the answer": {
			answer: Answer{Status: "processing", NextPoll: 7 * time.Second},
			want:   Settlement{Status: "processing", Delay: 7 * time.Second},
		},
		"no interval named":                   {answer: Answer{}, want: Settlement{Delay: 15 * time.Second}},
		"below MinInterval":                   {answer: Answer{NextPoll: time.Millisecond}, want: Settlement{Delay: time.Second}},
		"above MaxInterval":                   {answer: Answer{NextPoll: 90 * time.Hour}, want: Settlement{Delay: time.Hour}},
		"jitter adds a tenth":                 {answer: Answer{NextPoll: 10 * time.Second}, random: 1, want: Settlement{Delay: 11 * time.Second}},
		"stretch":                             {answer: Answer{NextPoll: time.Second}, stretch: 2 * time.Hour, want: Settlement{Delay: 2 * time.Hour}},
		"the hint is longer than the stretch": {answer: Answer{NextPoll: 20 * time.Second}, stretch: 2 * time.Second, want: Settlement{Delay: 20 * time.Second}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c.want.JobID, c.want.Polled = "job_1", true
			c.want.Backoff = max(min(time.Duration(120+30*c.random)*time.Second, 15*time.Minute), c.stretch)
			got := contract.decide(Job{ID: "job_1", ConsecutiveErrors: 3}, LeaseID{}, c.answer, nil, c.stretch, c.random)
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
}

func TestDecide_Backoff(t *testing.T) {
	none := time.Duration(-1)
	for name, c := range map[string]struct {
		job     Job
		retry   time.Duration
		stretch time.Duration
		random  float64
		want    time.Duration
	}{
		"first error":               {retry: none, want: 15 * time.Second},
		"jitter adds a quarter":     {retry: none, random: 1, want: 18750 * time.Millisecond},
		"third error":               {job: Job{ConsecutiveErrors: 2}, retry: none, want: time.Minute},
		"never past the longest":    {job: Job{ConsecutiveErrors: 6}, retry: none, random: 1, want: 15 * time.Minute},
		"thousands of errors":       {job: Job{ConsecutiveErrors: 1 << 30}, retry: none, want: 15 * time.Minute},
		"just before a day":         {job: Job{ConsecutiveErrors: 90, Failing: 24*time.Hour - 1}, retry: none, want: 15 * time.Minute},
		"after a day":               {job: Job{ConsecutiveErrors: 90, Failing: 24 * time.Hour}, retry: none, want: 6 * time.Hour},
		"Retry-After asks for more": {retry: time.Hour, want: time.Hour},
		"Retry-After of nothing":    {retry: 0, want: 15 * time.Second},
		"Retry-After of a year":     {retry: 365 * 24 * time.Hour, want: 24 * time.Hour},
		"stretch":                   {retry: none, stretch: time.Hour, want: time.Hour},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			readErr := &ReadError{Class: HTTP5xx, HTTPStatus: 503, RetryAfter: c.retry}
			got := contract.decide(c.job, LeaseID{}, Answer{}, readErr, c.stretch, c.random)
			if got.Delay != c.want || got.State != "" || got.Error != "http_5xx 503" || !got.Polled {
				t.Errorf("got %+v, want a delay of %v", got, c.want)
			}
		})
	}
}

func TestDecide_LongerBackoffMax(t *testing.T) {
	s := contract
	s.BackoffMax = 10 * time.Hour
	got := s.decide(Job{ConsecutiveErrors: 90, Failing: 25 * time.Hour}, LeaseID{}, Answer{}, &ReadError{Class: Timeout, RetryAfter: -1}, 0, 0)
	if got.Delay != 10*time.Hour || got.Polled {
		t.Errorf("got %+v, want 10 h and no poll counted", got)
	}
}

func TestDecide_DefaultInterval(t *testing.T) {
	for name, s := range map[string]Settings{
		"MaxInterval below the default": {DefaultInterval: 15 * time.Second, MinInterval: time.Second, MaxInterval: 10 * time.Second},
		"MinInterval above the default": {DefaultInterval: 15 * time.Second, MinInterval: time.Minute, MaxInterval: time.Hour},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if got := s.decide(Job{}, LeaseID{}, Answer{}, nil, 0, 0); got.Delay != 15*time.Second {
				t.Errorf("got %v, want the default as it is set", got.Delay)
			}
		})
	}
}

func TestDecide_NotFound(t *testing.T) {
	for name, c := range map[string]struct {
		job      Job
		status   int
		state    string
		notFound int
	}{
		"first 404":            {Job{}, 404, "", 1},
		"eighth over an hour":  {Job{ConsecutiveErrors: 7, NotFound: 7, Failing: time.Hour}, 404, StateNotFound, 8},
		"410 counts":           {Job{ConsecutiveErrors: 9, NotFound: 7, Failing: time.Hour}, 410, StateNotFound, 8},
		"too early":            {Job{ConsecutiveErrors: 7, NotFound: 7, Failing: 59 * time.Minute}, 404, "", 8},
		"has answered before":  {Job{ConsecutiveErrors: 90, NotFound: 7, Failing: time.Hour, Answered: true}, 404, "", 8},
		"other errors between": {Job{ConsecutiveErrors: 40, NotFound: 3, Failing: 2 * time.Hour}, 404, "", 4},
		"other errors keep it": {Job{ConsecutiveErrors: 7, NotFound: 7, Failing: time.Hour}, 500, "", 7},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			readErr := &ReadError{Class: HTTP4xx, HTTPStatus: c.status, RetryAfter: -1}
			got := contract.decide(c.job, LeaseID{}, Answer{}, readErr, 0, 0)
			if got.State != c.state || got.NotFound != c.notFound {
				t.Errorf("got state %q, %d answers of 404; want %q, %d", got.State, got.NotFound, c.state, c.notFound)
			}
		})
	}
}

func TestDecide_LongRunning(t *testing.T) {
	for name, c := range map[string]struct {
		job  Job
		hint time.Duration
		want time.Duration
	}{
		"few reads":             {Job{Polls: 99, Age: 45 * 24 * time.Hour}, 15 * time.Second, 15 * time.Second},
		"enough reads":          {Job{Polls: 100, Age: 45 * 24 * time.Hour}, 15 * time.Second, 10 * time.Minute},
		"an hour":               {Job{Polls: 200, Age: time.Hour}, 15 * time.Second, 18 * time.Second},
		"half an hour":          {Job{Polls: 100, Age: 30 * time.Minute}, 15 * time.Second, 15 * time.Second},
		"45 days":               {Job{Polls: 9000, Age: 45 * 24 * time.Hour}, 15 * time.Second, 10 * time.Minute},
		"age not known":         {Job{Polls: 2000}, 15 * time.Second, 150 * time.Second},
		"age not known, long":   {Job{Polls: 1 << 30}, time.Hour, time.Hour},
		"a hint above the rule": {Job{Polls: 9000, Age: 45 * 24 * time.Hour}, time.Hour, time.Hour},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got := contract.decide(c.job, LeaseID{}, Answer{Status: "processing", NextPoll: c.hint}, nil, 0, 0)
			if got.Delay != c.want {
				t.Errorf("got %v, want %v", got.Delay, c.want)
			}
		})
	}
}

func TestDecide_RefusedByTable(t *testing.T) {
	job := Job{ID: "job_1", ConsecutiveErrors: 2, NotFound: 0}
	s := contract.decide(job, LeaseID{1}, Answer{Terminal: true, Status: "canceled", Body: []byte(`{}`)}, nil, 0, 0)
	if s.Delay != time.Minute {
		t.Errorf("a finished row is due after %v, want the back-off of a minute", s.Delay)
	}
	got := s.refused(WriteError{JobID: "job_1", SQLState: "23514", Object: "state_check", Write: WriteSettle})
	want := Settlement{
		JobID: "job_1", Lease: LeaseID{1}, Delay: time.Minute, Backoff: time.Minute, Polled: true, Status: "canceled",
		Class: WriteRefused, Error: "refused settle SQLSTATE 23514 state_check",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func FuzzDecide(f *testing.F) {
	f.Add(int64(15e9), int64(-1), 3, int64(0), 0.5, 7, 404, false)
	f.Add(int64(-1), int64(1)<<62, 1<<40, int64(1)<<62, 0.999, -1, 0, false)
	f.Add(int64(1)<<62, int64(0), 0, int64(9e18), 0.0, 1<<40, 200, true)
	f.Fuzz(func(t *testing.T, hint, retry int64, errs int, failing int64, random float64, count int, status int, good bool) {
		if random < 0 || random >= 1 || random != random || errs < 0 || failing < 0 {
			return
		}
		job := Job{ID: "job_1", ConsecutiveErrors: errs, Failing: time.Duration(failing), NotFound: count, Polls: count, Age: time.Duration(failing)}
		var readErr *ReadError
		if !good {
			readErr = &ReadError{Class: HTTP4xx, HTTPStatus: status, RetryAfter: time.Duration(retry)}
		}
		got := contract.decide(job, LeaseID{}, Answer{NextPoll: time.Duration(hint)}, readErr, 0, random)
		most := 66 * time.Minute
		if !good {
			most = retryAfterMax
		}
		if got.State == "" && (got.Delay < time.Second || got.Delay > most) {
			t.Errorf("delay %v outside 1 s to %v", got.Delay, most)
		}
	})
}
