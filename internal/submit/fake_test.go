package submit_test

import (
	"context"
	"slices"
	"sync"
	"time"

	"sumepoller/internal/submit"
)

// memory is a Store of one key, in memory.
type memory struct {
	mu    sync.Mutex
	sub   *submit.Submission
	born  time.Time
	fail  func(method string) error // if not nil, called before each method
	marks int                       // calls of Mark
}

func (m *memory) do(method string, change func()) (submit.Submission, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.fail != nil {
		if err := m.fail(method); err != nil {
			return submit.Submission{}, err
		}
	}
	change()
	sub := *m.sub
	sub.Age = time.Since(m.born)
	m.sub.New = false
	return sub, nil
}

func (m *memory) Find(context.Context, string) (submit.Submission, error) {
	m.mu.Lock()
	known := m.sub != nil
	m.mu.Unlock()
	if !known {
		return submit.Submission{}, nil
	}
	return m.do("find", func() {})
}

func (m *memory) Try(context.Context, string) error {
	if m.fail == nil {
		return nil
	}
	return m.fail("try")
}

func (m *memory) Open(_ context.Context, _ string, request []byte) (submit.Submission, error) {
	return m.do("open", func() {
		if m.sub == nil {
			m.sub, m.born = &submit.Submission{New: true, Request: slices.Clone(request), State: submit.Sending}, time.Now()
		}
	})
}

func (m *memory) Mark(_ context.Context, _ string, o submit.Outcome) (submit.Submission, error) {
	return m.do("mark", func() {
		m.marks++
		if m.sub.JobID == "" {
			m.sub.State, m.sub.HTTPStatus, m.sub.Unanswered, m.sub.LastError = o.State, o.HTTPStatus, o.Unanswered, o.LastError
		}
	})
}

func (m *memory) Keep(_ context.Context, _, jobID string) error {
	_, err := m.do("keep", func() {
		if m.sub.JobID == "" {
			m.sub.State, m.sub.JobID = submit.Sending, jobID
		}
	})
	return err
}

func (m *memory) Accept(_ context.Context, _, jobID string) (submit.Submission, error) {
	return m.do("accept", func() {
		if m.sub.JobID == "" || m.sub.JobID == jobID {
			m.sub.State, m.sub.JobID, m.sub.JobState = submit.Accepted, jobID, "pending"
			m.sub.HTTPStatus, m.sub.Unanswered, m.sub.LastError = 0, false, ""
		}
	})
}

func (m *memory) Unrecord(_ context.Context, _, jobID, reason string) (submit.Submission, error) {
	return m.do("unrecord", func() {
		if m.sub.State != submit.Accepted && (m.sub.JobID == "" || m.sub.JobID == jobID) {
			m.sub.State, m.sub.JobID, m.sub.LastError = submit.Unrecorded, jobID, reason
		}
	})
}

// posts is a Poster that gives one answer after the other, and then always the
// last one.
type posts struct {
	mu      sync.Mutex
	answers []error // nil: job_1
	sent    []string
	at      []time.Time
}

func (p *posts) Submit(_ context.Context, key string, body []byte) (submit.Answer, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.sent = append(p.sent, key+" "+string(body))
	p.at = append(p.at, time.Now())
	var err error
	if len(p.answers) > 0 {
		err = p.answers[min(len(p.sent), len(p.answers))-1]
	}
	if err != nil {
		return submit.Answer{}, err
	}
	return submit.Answer{JobID: "job_1", Hit: len(p.sent) > 1}, nil
}

// pauses returns the times between the posts.
func (p *posts) pauses() []time.Duration {
	var pauses []time.Duration
	for i := 1; i < len(p.at); i++ {
		pauses = append(pauses, p.at[i].Sub(p.at[i-1]))
	}
	return pauses
}

func postError(status int, code string) *submit.PostError {
	return &submit.PostError{HTTPStatus: status, Code: code, RequestID: "req_1", RetryAfter: -1}
}

func retryAfter(status int, after time.Duration) *submit.PostError {
	e := postError(status, "")
	e.RetryAfter = after
	return e
}
