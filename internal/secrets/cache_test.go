package secrets_test

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"sumepoller/internal/secrets"
)

// store is a secret whose fetch takes a second of the bubble's time.
type store struct {
	mu      sync.Mutex
	value   string
	err     error
	fetches atomic.Int64
}

func (s *store) set(value string, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.value, s.err = value, err
}

func (s *store) Fetch(ctx context.Context, _ string) (string, error) {
	s.fetches.Add(1)
	select {
	case <-time.After(time.Second):
	case <-ctx.Done():
		return "", ctx.Err()
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.value, s.err
}

var errDown = errors.New("down")

func TestGet_Cached(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := &store{value: "one"}
		c := secrets.NewCache(s)
		expect(t, c, "one")
		s.set("two", nil)
		time.Sleep(4 * time.Minute)
		expect(t, c, "one")
		time.Sleep(time.Minute)
		expect(t, c, "two")
		fetched(t, s, 2)
	})
}

func TestGet_StaleWhileFetchFails(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := &store{value: "one"}
		c := secrets.NewCache(s)
		expect(t, c, "one")
		s.set("", errDown)
		time.Sleep(6 * time.Minute)
		for range 100 {
			expect(t, c, "one")
		}
		fetched(t, s, 2) // the failure is not asked for again at once
		time.Sleep(time.Minute)
		expect(t, c, "one")
		s.set("two", nil)
		time.Sleep(time.Minute)
		expect(t, c, "two")
		fetched(t, s, 4)
	})
}

func TestGet_SharedFetch(t *testing.T) {
	t.Parallel()
	for name, err := range map[string]error{"good": nil, "bad": errDown} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				s := &store{value: "one", err: err}
				c := secrets.NewCache(s)
				var callers sync.WaitGroup
				for range 64 {
					callers.Go(func() {
						if _, got := c.Get(t.Context(), "id"); !errors.Is(got, err) {
							t.Errorf("error %v, want %v", got, err)
						}
					})
				}
				callers.Wait()
				fetched(t, s, 1)
			})
		})
	}
}

func TestGet_RetryAfterError(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := &store{err: errDown}
		c := secrets.NewCache(s)
		if _, err := c.Get(t.Context(), "id"); !errors.Is(err, errDown) {
			t.Fatalf("error %v, want %v", err, errDown)
		}
		s.set("one", nil)
		expect(t, c, "one")
	})
}

func TestGet_NoAnswer(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		c := secrets.NewCache(silent{})
		began := time.Now()
		if _, err := c.Get(t.Context(), "id"); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("error %v, want a deadline", err)
		}
		if took := time.Since(began); took > 5*time.Second {
			t.Errorf("took %v", took)
		}
	})
}

func TestGet_CallerCanceled(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := &store{value: "one"}
		c := secrets.NewCache(s)
		hurried, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
		defer cancel()
		first := make(chan error)
		go func() { _, err := c.Get(hurried, "id"); first <- err }()
		synctest.Wait()
		second := make(chan error)
		go func() { _, err := c.Get(hurried, "id"); second <- err }()
		for _, caller := range []chan error{first, second} {
			if err := <-caller; !errors.Is(err, context.DeadlineExceeded) {
				t.Errorf("error %v, want a deadline", err)
			}
		}
		expect(t, c, "one") // the hurried caller's end is no failure of the secret
	})
}

func TestRenew_OncePerRun(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := &store{value: "old"}
		c := secrets.NewCache(s)
		expect(t, c, "old")
		var callers sync.WaitGroup
		for range 64 {
			callers.Go(func() { renews(t, c, "old", "old") })
		}
		callers.Wait()
		fetched(t, s, 2)
		s.set("new", nil)
		renews(t, c, "old", "old") // the same run does not ask again
		c.Rearm()
		for range 64 {
			callers.Go(func() { renews(t, c, "old", "new") })
		}
		callers.Wait()
		fetched(t, s, 3)
		expect(t, c, "new")
		fetched(t, s, 3)
	})
}

func TestRenew_ErrorShared(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := &store{value: "old"}
		c := secrets.NewCache(s)
		expect(t, c, "old")
		s.set("", errDown)
		for range 10 {
			if _, err := c.Renew(t.Context(), "id", "old"); !errors.Is(err, errDown) {
				t.Errorf("error %v, want %v", err, errDown)
			}
		}
		fetched(t, s, 2)
		expect(t, c, "old")
	})
}

func expect(t *testing.T, c *secrets.Cache, want string) {
	t.Helper()
	if got, err := c.Get(t.Context(), "id"); got != want || err != nil {
		t.Errorf("Get: %q, %v; want %q", got, err, want)
	}
}

func renews(t *testing.T, c *secrets.Cache, rejected, want string) {
	t.Helper()
	if got, err := c.Renew(t.Context(), "id", rejected); got != want || err != nil {
		t.Errorf("Renew: %q, %v; want %q", got, err, want)
	}
}

func fetched(t *testing.T, s *store, want int64) {
	t.Helper()
	if got := s.fetches.Load(); got != want {
		t.Errorf("%d fetches, want %d", got, want)
	}
}

type silent struct{}

func (silent) Fetch(ctx context.Context, _ string) (string, error) {
	<-ctx.Done()
	return "", ctx.Err()
}
