package sume_test

import (
	"cmp"
	"context"
	"errors"
	"net/http"
	"testing"
	"time"

	"go.uber.org/goleak"

	"sumepoller/internal/poller"
	"sumepoller/internal/submit"
	"sumepoller/internal/sume"
	"sumepoller/internal/sume/sumetest"
)

var (
	_ poller.Reader = (*sume.Client)(nil)
	_ submit.Poster = (*sume.Client)(nil)
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const testKey = "sk_test_0123456789"

// fixedKeys hands out one key, and another once that is renewed.
type fixedKeys struct {
	key   string
	renew func(ctx context.Context, rejected string) (string, error)
}

func (k fixedKeys) Key(context.Context) (string, error) { return k.key, nil }

func (k fixedKeys) Renew(ctx context.Context, rejected string) (string, error) {
	if k.renew == nil {
		return k.key, nil
	}
	return k.renew(ctx, rejected)
}

// listen serves a handler until the test ends.
func listen(t testing.TB, h http.Handler) string {
	t.Helper()
	s, err := sumetest.Listen(h)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Close)
	return s.URL
}

// connect returns a client of the API at url with ample time.
func connect(t testing.TB, url string) *sume.Client {
	t.Helper()
	return connectWith(t, sume.Config{BaseURL: url, Timeout: 20 * time.Second}, fixedKeys{key: testKey})
}

// connectWith takes the address of the API without /v1.
func connectWith(t testing.TB, cfg sume.Config, keys sume.Keys) *sume.Client {
	t.Helper()
	cfg.BaseURL += "/v1"
	cfg.KeyHeader = cmp.Or(cfg.KeyHeader, "Authorization: Bearer ")
	c, err := sume.NewClient(cfg, keys)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.CloseIdle)
	return c
}

// fault returns err as a read error, and fails the test if it is another error.
func fault(t testing.TB, err error) *poller.ReadError {
	t.Helper()
	var f *poller.ReadError
	if !errors.As(err, &f) {
		t.Fatalf("got error %v, want a read error", err)
	}
	return f
}

// api returns an API that knows job_1, and a client of it.
func api(t testing.TB, o sumetest.Options) (*sumetest.API, *sume.Client) {
	t.Helper()
	a := sumetest.New(o)
	a.AddJob("job_1", sumetest.Plan{})
	return a, connect(t, listen(t, a))
}
