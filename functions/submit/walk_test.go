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

// mortal dies at one of the points before and after each call of the store and
// the poster, by a panic that nothing in the submitter outlives.
type mortal struct {
	submit.Store
	submit.Poster
	point, end int
}

type death struct{}

func (m *mortal) pass() {
	if m.point++; m.point == m.end {
		panic(death{})
	}
}

// through lets a call pass between two points.
func through[T any](m *mortal, call func() (T, error)) (T, error) {
	m.pass()
	defer m.pass()
	return call()
}

func (m *mortal) Open(ctx context.Context, key string, request []byte) (submit.Submission, error) {
	return through(m, func() (submit.Submission, error) { return m.Store.Open(ctx, key, request) })
}

func (m *mortal) Mark(ctx context.Context, key, state, lastError string) (submit.Submission, error) {
	return through(m, func() (submit.Submission, error) { return m.Store.Mark(ctx, key, state, lastError) })
}

func (m *mortal) Accept(ctx context.Context, key, jobID string) (submit.Submission, error) {
	return through(m, func() (submit.Submission, error) { return m.Store.Accept(ctx, key, jobID) })
}

func (m *mortal) Submit(ctx context.Context, key string, body []byte) (submit.Answer, error) {
	return through(m, func() (submit.Answer, error) { return m.Poster.Submit(ctx, key, body) })
}

// buyUntil asks for the order of a key and dies at the point; it tells whether
// it came to that.
func (m *market) buyUntil(t *testing.T, key string, end int) (died bool) {
	t.Helper()
	defer func() {
		if r := recover(); r != nil {
			if _, ok := r.(death); !ok {
				panic(r)
			}
			died = true
		}
	}()
	s := m.submitter()
	d := &mortal{Store: s.Store, Poster: s.Poster, end: end}
	s.Store, s.Poster = d, d
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	_, err := s.Submit(ctx, submit.Request{Key: key, Video: []byte(video)})
	if err != nil && !errors.Is(err, submit.ErrRejected) {
		t.Errorf("%s: %v", key, err)
	}
	return false
}

// TestDyingAtEveryPoint walks all points at which a submission can die, in the
// plain case and while the API misbehaves, and asks again each time.
func TestDyingAtEveryPoint(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		fault  sumetest.Fault
		points int // at least so many there are
	}{
		"the API answers":                {sumetest.Fault{}, 6},
		"an answer is lost":              {sumetest.Fault{Times: 1, Break: sumetest.BreakClose}, 6},
		"the first post is not heard":    {sumetest.Fault{Times: 1, Status: http.StatusServiceUnavailable}, 10},
		"503 after the job was made":     {sumetest.Fault{Times: 1, Status: http.StatusServiceUnavailable, Make: true}, 10},
		"the first answer is cut":        {sumetest.Fault{Times: 1, Break: sumetest.BreakCut}, 10},
		"credits are missing at first":   {sumetest.Fault{Times: 1, Status: http.StatusPaymentRequired}, 6},
		"the rate is exceeded for hours": {sumetest.Fault{Times: 1, Status: http.StatusTooManyRequests, Header: map[string]string{"Retry-After": "7200"}}, 6},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			m := newMarket(t, sumetest.Options{})
			end := 1
			for died := true; died; end++ {
				key := fmt.Sprintf("order-%d", end)
				m.api.SetPostFault(tt.fault)
				died = m.buyUntil(t, key, end)
				m.askUntilSold(t, key)
				m.settled(t, key)
			}
			if end-2 < tt.points {
				t.Errorf("walked %d points, want at least %d", end-2, tt.points)
			}
			if billed := m.api.Stats().Billed; billed != end-1 {
				t.Errorf("%d orders, %d jobs billed", end-1, billed)
			}
		})
	}
}

// askUntilSold asks again for a key, as a caller would, until it has its job;
// then once more, which must send nothing.
func (m *market) askUntilSold(t *testing.T, key string) {
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
		t.Fatalf("%s: asked again: %v", key, err)
	}
	sent, _ := m.posts(key)
	again, err := m.buy(t, key)
	if posts, _ := m.posts(key); err != nil || again.JobID != first.JobID || !again.IdempotencyHit || len(posts) != len(sent) {
		t.Errorf("%s: first %+v, again %+v, %v; %d posts, then %d", key, first, again, err, len(sent), len(posts))
	}
}

func TestTwinsAtOnce(t *testing.T) {
	t.Parallel()
	m := newMarket(t, sumetest.Options{Latency: 30 * time.Millisecond})
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			if got, err := m.buy(t, "order-42"); err != nil || got.JobID != "job_bought_1" || got.State != "pending" {
				t.Errorf("got %+v, %v", got, err)
			}
		})
	}
	wg.Wait()
	m.settled(t, "order-42")
	if billed := m.api.Stats().Billed; billed != 1 {
		t.Errorf("%d jobs billed", billed)
	}
}
