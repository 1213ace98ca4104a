package main_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"sync"
	"testing"
	"time"

	"sumepoller/internal/submit"
	"sumepoller/internal/sume/sumetest"
)

// crasher panics at one of the points before and after each call of the store and
// the poster.
type crasher struct {
	submit.Store
	submit.Poster
	point, end int
}

type crash struct{}

func (m *crasher) pass() {
	if m.point++; m.point == m.end {
		panic(crash{})
	}
}

// through makes a call between two points.
func through[T any](m *crasher, call func() (T, error)) (T, error) {
	m.pass()
	defer m.pass()
	return call()
}

func (m *crasher) Find(ctx context.Context, key string) (submit.Submission, error) {
	return through(m, func() (submit.Submission, error) { return m.Store.Find(ctx, key) })
}

func (m *crasher) Try(ctx context.Context, key string) error {
	_, err := through(m, func() (struct{}, error) { return struct{}{}, m.Store.Try(ctx, key) })
	return err
}

func (m *crasher) Open(ctx context.Context, key string, request []byte) (submit.Submission, error) {
	return through(m, func() (submit.Submission, error) { return m.Store.Open(ctx, key, request) })
}

func (m *crasher) Mark(ctx context.Context, key string, o submit.Outcome) (submit.Submission, error) {
	return through(m, func() (submit.Submission, error) { return m.Store.Mark(ctx, key, o) })
}

func (m *crasher) Keep(ctx context.Context, key, jobID string) error {
	_, err := through(m, func() (struct{}, error) { return struct{}{}, m.Store.Keep(ctx, key, jobID) })
	return err
}

func (m *crasher) Accept(ctx context.Context, key, jobID string) (submit.Submission, error) {
	return through(m, func() (submit.Submission, error) { return m.Store.Accept(ctx, key, jobID) })
}

func (m *crasher) Unrecord(ctx context.Context, key, jobID, reason string) (submit.Submission, error) {
	return through(m, func() (submit.Submission, error) { return m.Store.Unrecord(ctx, key, jobID, reason) })
}

func (m *crasher) Submit(ctx context.Context, key string, body []byte) (submit.Answer, error) {
	return through(m, func() (submit.Answer, error) { return m.Poster.Submit(ctx, key, body) })
}

// buyOrCrash submits the order of a key and crashes at the point. It reports
// whether the point was reached.
func (m *fixture) buyOrCrash(t *testing.T, key string, end int) (crashed bool) {
	t.Helper()
	defer func() {
		if r := recover(); r != nil {
			if _, ok := r.(crash); !ok {
				panic(r)
			}
			crashed = true
		}
	}()
	s := m.submitter()
	d := &crasher{Store: s.Store, Poster: s.Poster, end: end}
	s.Store, s.Poster = d, d
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	_, err := s.Submit(ctx, submit.Request{Key: key, Video: []byte(video)})
	if err != nil && !errors.Is(err, submit.ErrRejected) && !errors.Is(err, submit.ErrUnrecorded) {
		t.Errorf("%s: %v", key, err)
	}
	return false
}

// TestSubmit_Crashes crashes at every point of a submission, with a working and
// with a failing API, and sends the order again each time.
func TestSubmit_Crashes(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		fault  sumetest.Fault
		points int // at least
	}{
		"the API answers":            {sumetest.Fault{}, 12},
		"answer lost":                {sumetest.Fault{Times: 1, Break: sumetest.BreakClose}, 12},
		"first post lost":            {sumetest.Fault{Times: 1, Status: http.StatusServiceUnavailable}, 16},
		"503 after the job was sold": {sumetest.Fault{Times: 1, Status: http.StatusServiceUnavailable, Make: true}, 16},
		"first answer cut off":       {sumetest.Fault{Times: 1, Break: sumetest.BreakCut}, 16},
		"no credits at first":        {sumetest.Fault{Times: 1, Status: http.StatusPaymentRequired}, 10},
		"rate limited for hours":     {sumetest.Fault{Times: 1, Status: http.StatusTooManyRequests, Header: map[string]string{"Retry-After": "7200"}}, 10},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			m := newFixture(t, sumetest.Options{})
			end := 1
			for crashed := true; crashed; end++ {
				key := fmt.Sprintf("order-%d", end)
				m.api.SetPostFault(tt.fault)
				crashed = m.buyOrCrash(t, key, end)
				m.buyAgain(t, key)
				m.wantSettled(t, key)
			}
			if end-2 < tt.points {
				t.Errorf("crashed at %d points, want at least %d", end-2, tt.points)
			}
			if billed := m.api.Stats().Billed; billed != end-1 {
				t.Errorf("%d orders, %d jobs billed", end-1, billed)
			}
		})
	}
}

// buyAgain sends the order again, as a caller would, until it has its job; then
// once more, which must not post.
func (m *fixture) buyAgain(t *testing.T, key string) {
	t.Helper()
	var (
		first submit.Result
		err   error
	)
	for range 3 {
		if first, err = m.buy(t, key); err == nil {
			break
		}
	}
	if err != nil {
		t.Fatalf("%s: sent again: %v", key, err)
	}
	sent, _ := m.posts(key)
	again, err := m.buy(t, key)
	if posts, _ := m.posts(key); err != nil || again.JobID != first.JobID || !again.IdempotencyHit || len(posts) != len(sent) {
		t.Errorf("%s: first %+v, again %+v, %v; %d posts, then %d", key, first, again, err, len(sent), len(posts))
	}
}

func TestSubmit_Concurrent(t *testing.T) {
	t.Parallel()
	m := newFixture(t, sumetest.Options{Latency: 30 * time.Millisecond})
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			if got, err := m.buy(t, "order-42"); err != nil || got.JobID != "job_bought_1" || got.State != "pending" {
				t.Errorf("got %+v, %v", got, err)
			}
		})
	}
	wg.Wait()
	m.wantSettled(t, "order-42")
	if billed := m.api.Stats().Billed; billed != 1 {
		t.Errorf("%d jobs billed", billed)
	}
}

// TestSubmit_CrashesTableRefuses crashes at every point of a submission whose row
// the table refuses after the post. Then the table is fixed and the order is sent
// again.
func TestSubmit_CrashesTableRefuses(t *testing.T) {
	t.Parallel()
	m := newFixture(t, sumetest.Options{})
	end, known := 1, 0
	for crashed := true; crashed; end++ {
		key := fmt.Sprintf("order-%d", end)
		refuse := func() {
			m.exec(t, `ALTER TABLE video_jobs ADD CONSTRAINT only_old CHECK (idempotency_key <> '`+key+`')`)
		}
		m.onPost.Store(&refuse)
		crashed = m.buyOrCrash(t, key, end)
		m.onPost.Store(nil)
		m.exec(t, `ALTER TABLE video_jobs DROP CONSTRAINT IF EXISTS only_old`)
		sent, _ := m.posts(key)
		id := m.rows(t, `SELECT job_id FROM video_submissions WHERE idempotency_key = $1 AND job_id IS NOT NULL`, key)
		m.buyAgain(t, key)
		m.wantSettled(t, key)
		if posts, _ := m.posts(key); len(id) > 0 {
			if known++; len(posts) != len(sent) {
				t.Errorf("%s: posted again although its job %s was known", key, id[0])
			}
		}
	}
	if known < 6 {
		t.Errorf("the job was known at %d crashes, want at least 6", known)
	}
	if billed := m.api.Stats().Billed; billed != end-1 {
		t.Errorf("%d orders, %d jobs billed", end-1, billed)
	}
}
