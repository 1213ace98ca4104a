package sume_test

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"sumepoller/internal/poller"
	"sumepoller/internal/sume"
	"sumepoller/internal/sume/sumetest"
)

// The key is rotated while the old one is cached.
func TestStatus_KeyRefused(t *testing.T) {
	t.Parallel()
	const newer = "sk_test_newer"
	for name, tt := range map[string]struct {
		renewed string
		err     error
		reads   int
		ends    bool
	}{
		"is made again with a newer one": {renewed: newer, reads: 2, ends: true},
		"is refused while it is current": {renewed: testKey, reads: 1},
		"is refused with the newer one":  {renewed: "sk_test_wrong", reads: 2},
		"is refused when none is to be had": {
			err: errors.New("secret: down"), reads: 1,
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			a := sumetest.New(sumetest.Options{Keys: []string{newer}})
			a.AddJob("job_1", sumetest.Plan{})
			var renewals atomic.Int64
			keys := fixedKeys{key: testKey, renew: func(_ context.Context, rejected string) (string, error) {
				if renewals.Add(1); rejected != testKey {
					t.Errorf("renewed %q, want the refused key", rejected)
				}
				return tt.renewed, tt.err
			}}
			c := connectWith(t, sume.Config{BaseURL: listen(t, a), Timeout: 5 * time.Second}, keys)
			answer, err := c.Status(t.Context(), "job_1")
			if tt.ends {
				if err != nil || !answer.Terminal {
					t.Errorf("got %+v, %v, want the end", answer, err)
				}
			} else if f := fault(t, err); f.Class != poller.Unauthorized || f.HTTPStatus != http.StatusUnauthorized {
				t.Errorf("got %+v, want unauthorized 401", *f)
			}
			if reads := a.Stats().Reads; reads != tt.reads || renewals.Load() != 1 {
				t.Errorf("%d reads, %d renewals; want %d and one", reads, renewals.Load(), tt.reads)
			}
		})
	}
}

// keysFunc is a source of keys that has none.
type keysFunc func(ctx context.Context) (string, error)

func (f keysFunc) Key(ctx context.Context) (string, error) { return f(ctx) }

func (f keysFunc) Renew(ctx context.Context, _ string) (string, error) { return f(ctx) }

func TestStatus_NoKey(t *testing.T) {
	t.Parallel()
	for name, keys := range map[string]sume.Keys{
		"that can be had":    keysFunc(func(context.Context) (string, error) { return "", errors.New("secret: down") }),
		"that is not empty":  fixedKeys{key: ""},
		"that fits a header": fixedKeys{key: "sk\nX-Evil: 1"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			a := sumetest.New(sumetest.Options{})
			c := connectWith(t, sume.Config{BaseURL: listen(t, a), Timeout: 5 * time.Second}, keys)
			_, err := c.Status(t.Context(), "job_1")
			if f := fault(t, err); f.Class != poller.Unauthorized || f.HTTPStatus != 0 {
				t.Errorf("got %+v, want unauthorized without an answer", *f)
			}
			if _, err := c.Submit(t.Context(), "order-1", []byte(`{"a":1}`)); err == nil {
				t.Error("a post without a key succeeded")
			}
			if s := a.Stats(); s.Reads+len(s.Posts) != 0 {
				t.Errorf("something was sent: %+v", s)
			}
		})
	}
	t.Run("before the deadline", func(t *testing.T) {
		t.Parallel()
		keys := keysFunc(func(ctx context.Context) (string, error) { <-ctx.Done(); return "", ctx.Err() })
		c := connectWith(t, sume.Config{BaseURL: "http://127.0.0.1:1", Timeout: time.Second}, keys)
		ctx, cancel := context.WithTimeout(t.Context(), time.Millisecond)
		defer cancel()
		_, err := c.Status(ctx, "job_1")
		if f := fault(t, err); f.Class != poller.Timeout {
			t.Errorf("got %+v, want a timeout", *f)
		}
	})
	t.Run("because the context ended", func(t *testing.T) {
		t.Parallel()
		keys := keysFunc(func(ctx context.Context) (string, error) { <-ctx.Done(); return "", ctx.Err() })
		c := connectWith(t, sume.Config{BaseURL: "http://127.0.0.1:1", Timeout: time.Second}, keys)
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		if _, err := c.Status(ctx, "job_1"); !errors.Is(err, context.Canceled) {
			t.Errorf("got %v, want the context's error", err)
		}
	})
}

func TestKey_NotSentAfterRedirect(t *testing.T) {
	t.Parallel()
	other := sumetest.New(sumetest.Options{Unknown: &sumetest.Plan{}})
	elsewhere := listen(t, other)
	for _, status := range []int{301, 302, 303, 307, 308} {
		for _, keyHeader := range []string{"Authorization: Bearer ", "X-Api-Key: "} {
			var seen atomic.Value
			url := listen(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				seen.Store(r.Header)
				http.Redirect(w, r, elsewhere+r.URL.Path, status)
			}))
			c := connectWith(t, sume.Config{BaseURL: url, KeyHeader: keyHeader, Timeout: 5 * time.Second}, fixedKeys{key: testKey})
			_, err := c.Status(t.Context(), "job_1")
			if f := fault(t, err); f.Class != poller.Malformed || f.HTTPStatus != status {
				t.Errorf("got %+v, want malformed %d", *f, status)
			}
			if _, err := c.Submit(t.Context(), "order-1", []byte(`{"a":1}`)); err == nil {
				t.Error("a redirected post succeeded")
			}
			h := seen.Load().(http.Header)
			name, prefix, _ := strings.Cut(keyHeader, ": ")
			if got := h.Get(name); got != prefix+testKey {
				t.Errorf("header %s: got %q, want the key", name, got)
			}
			if h.Get("Authorization") != "" && h.Get("X-Api-Key") != "" {
				t.Error("the key was sent both ways")
			}
		}
	}
	if s := other.Stats(); s.Reads+len(s.Posts)+s.Strays != 0 || len(s.Hosts) != 0 {
		t.Errorf("the other host was reached: %+v", s)
	}
}

func TestNewClient_Invalid(t *testing.T) {
	t.Parallel()
	good := sume.Config{BaseURL: "https://api.sume.com/v1", KeyHeader: "X-Api-Key: ", Timeout: time.Second}
	for name, change := range map[string]func(*sume.Config){
		"a faulty URL":        func(c *sume.Config) { c.BaseURL = "x" },
		"no header":           func(c *sume.Config) { c.KeyHeader = "" },
		"no time":             func(c *sume.Config) { c.Timeout = 0 },
		"a time that is past": func(c *sume.Config) { c.Timeout = -1 },
	} {
		cfg := good
		change(&cfg)
		if _, err := sume.NewClient(cfg, fixedKeys{}); err == nil {
			t.Errorf("%s was taken", name)
		}
	}
	if _, err := sume.NewClient(good, nil); err == nil {
		t.Error("no keys were taken")
	}
}
