package sume_test

import (
	"context"
	"errors"
	"net"
	"strings"
	"testing"
	"time"

	"sumepoller/internal/poller"
	"sumepoller/internal/sume"
	"sumepoller/internal/sume/sumetest"
)

// silent returns an address that takes connections and never answers.
func silent(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() })
	return l.Addr().String()
}

func TestStatus_Timeout(t *testing.T) {
	t.Parallel()
	drip := sumetest.Fault{Drip: time.Hour}
	for name, tt := range map[string]struct {
		url    func(t *testing.T, a *sumetest.API) string
		fault  sumetest.Fault
		status int
		reason string
	}{
		"TLS handshake":   {url: func(t *testing.T, _ *sumetest.API) string { return "https://" + silent(t) }, reason: "connecting"},
		"dial":            {url: func(t *testing.T, _ *sumetest.API) string { return "http://" + full(t) }, reason: "connecting"},
		"header":          {fault: sumetest.Fault{Break: sumetest.BreakHang}, reason: "waiting for the answer"},
		"delayed header":  {fault: sumetest.Fault{Delay: time.Hour}, reason: "waiting for the answer"},
		"dripping body":   {fault: drip, status: 200, reason: "reading the body"},
		"dripping chunks": {fault: sumetest.Fault{Body: strings.Repeat(" ", 20<<10), Drip: time.Hour}, status: 200, reason: "reading the body"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			a := sumetest.New(sumetest.Options{})
			a.AddJob("job_1", sumetest.Plan{})
			a.SetFault("job_1", tt.fault)
			if tt.url == nil {
				tt.url = func(t *testing.T, a *sumetest.API) string { return listen(t, a) }
			}
			const limit = time.Second
			c := connectWith(t, sume.Config{BaseURL: tt.url(t, a), Timeout: limit}, fixedKeys{key: testKey})
			start := time.Now()
			_, err := c.Status(t.Context(), "job_1")
			f := fault(t, err)
			if took := time.Since(start); took < limit || took > 10*limit {
				t.Errorf("took %v, want about %v", took, limit)
			}
			want := poller.ReadError{Class: poller.Timeout, HTTPStatus: tt.status, Reason: tt.reason, RetryAfter: -1}
			if *f != want {
				t.Errorf("got %+v, want %+v", *f, want)
			}
		})
	}
}

func TestStatus_ErrorWithSlowBody(t *testing.T) {
	t.Parallel()
	for status, want := range map[int]poller.Class{401: poller.Unauthorized, 404: poller.HTTP4xx, 429: poller.RateLimited, 500: poller.HTTP5xx} {
		t.Run(string(want), func(t *testing.T) {
			t.Parallel()
			a := sumetest.New(sumetest.Options{})
			a.SetFault("job_1", sumetest.Fault{Status: status, Drip: time.Hour})
			c := connectWith(t, sume.Config{BaseURL: listen(t, a), Timeout: time.Second}, fixedKeys{key: testKey})
			_, err := c.Status(t.Context(), "job_1")
			if f := fault(t, err); f.Class != want || f.HTTPStatus != status {
				t.Errorf("got %+v, want %s %d", *f, want, status)
			}
		})
	}
}

func TestStatus_ContextEnds(t *testing.T) {
	t.Parallel()
	for name, f := range map[string]sumetest.Fault{
		"in the header": {Break: sumetest.BreakHang},
		"in the body":   {Drip: time.Hour},
	} {
		t.Run("deadline "+name, func(t *testing.T) {
			t.Parallel()
			a, c := api(t, sumetest.Options{})
			a.SetFault("job_1", f)
			ctx, cancel := context.WithTimeout(t.Context(), 500*time.Millisecond)
			defer cancel()
			_, err := c.Status(ctx, "job_1")
			if f := fault(t, err); f.Class != poller.Timeout {
				t.Errorf("got %+v, want a timeout", *f)
			}
		})
		t.Run("cancelled "+name, func(t *testing.T) {
			t.Parallel()
			a, c := api(t, sumetest.Options{})
			a.SetFault("job_1", f)
			ctx, cancel := context.WithCancel(t.Context())
			timer := time.AfterFunc(500*time.Millisecond, cancel)
			defer timer.Stop()
			_, err := c.Status(ctx, "job_1")
			var f *poller.ReadError
			if !errors.Is(err, context.Canceled) || errors.As(err, &f) {
				t.Errorf("got %v, want the context's error", err)
			}
		})
	}
}
