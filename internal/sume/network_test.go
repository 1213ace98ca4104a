package sume_test

import (
	"crypto/x509"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"sumepoller/internal/poller"
	"sumepoller/internal/sume"
	"sumepoller/internal/sume/sumetest"
)

func TestStatus_NoServer(t *testing.T) {
	t.Parallel()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	_ = l.Close()
	_, err = connect(t, "http://"+l.Addr().String()).Status(t.Context(), "job_1")
	f := fault(t, err)
	if want := (poller.ReadError{Class: poller.Network, Reason: "connection refused", RetryAfter: -1}); *f != want {
		t.Errorf("got %+v, want %+v", *f, want)
	}
	if strings.Contains(err.Error(), l.Addr().String()) {
		t.Errorf("the error names the address: %v", err)
	}
}

// A row whose read kills its connection is repeated once by net/http, and not
// once for each connection that is kept.
func TestStatus_SentAtMostTwice(t *testing.T) {
	t.Parallel()
	for _, how := range []string{sumetest.BreakReset, sumetest.BreakClose} {
		t.Run(how, func(t *testing.T) {
			t.Parallel()
			a, c := api(t, sumetest.Options{})
			for round := range 20 {
				warm(t, a, c)
				before := a.Stats().Jobs["job_1"].Reads
				a.SetFault("job_1", sumetest.Fault{Break: how})
				_, err := c.Status(t.Context(), "job_1")
				if f := fault(t, err); f.Class != poller.Network || f.HTTPStatus != 0 {
					t.Fatalf("got %+v, want a network fault", *f)
				}
				if reads := a.Stats().Jobs["job_1"].Reads - before; reads > 2 {
					t.Fatalf("round %d: the server saw %d reads, want at most 2", round, reads)
				}
			}
		})
	}
}

// warm leaves a dozen kept connections behind.
func warm(t *testing.T, a *sumetest.API, c *sume.Client) {
	t.Helper()
	const conns = 12
	a.AddJob("warm", sumetest.Plan{})
	a.SetFault("warm", sumetest.Fault{Delay: 10 * time.Millisecond})
	var all sync.WaitGroup
	for range conns {
		all.Go(func() {
			if _, err := c.Status(t.Context(), "warm"); err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
}

func TestStatus_DeadConnection(t *testing.T) {
	t.Parallel()
	a, c := api(t, sumetest.Options{})
	for range 20 {
		if _, err := c.Status(t.Context(), "job_1"); err != nil {
			t.Fatal(err)
		}
		a.SetFault("job_1", sumetest.Fault{From: a.Stats().Jobs["job_1"].Reads + 1, Times: 1, Break: sumetest.BreakClose})
	}
}

// secure serves h over TLS with a certificate that only pool trusts.
func secure(t *testing.T, h http.Handler) (url string, pool *x509.CertPool) {
	t.Helper()
	s := httptest.NewUnstartedServer(h)
	s.EnableHTTP2 = true
	s.Config.ErrorLog = log.New(io.Discard, "", 0)
	s.StartTLS()
	t.Cleanup(s.Close)
	pool = x509.NewCertPool()
	pool.AddCert(s.Certificate())
	return s.URL, pool
}

func TestStatus_TLS(t *testing.T) {
	t.Parallel()
	a := sumetest.New(sumetest.Options{})
	a.AddJob("job_1", sumetest.Plan{})
	var second atomic.Int64
	url, pool := secure(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.ProtoMajor == 2 {
			second.Add(1)
		}
		a.ServeHTTP(w, r)
	}))
	t.Run("of an unknown authority", func(t *testing.T) {
		_, err := connect(t, url).Status(t.Context(), "job_1")
		if f := fault(t, err); f.Class != poller.Network || f.Reason != "certificate not trusted" {
			t.Errorf("got %+v, want an untrusted certificate", *f)
		}
	})
	t.Run("of a trusted one, 300 at once after the first", func(t *testing.T) {
		c := connectWith(t, sume.Config{BaseURL: url, Timeout: 20 * time.Second, Roots: pool}, fixedKeys{key: testKey})
		if _, err := c.Status(t.Context(), "job_1"); err != nil {
			t.Fatal(err)
		}
		var all sync.WaitGroup
		for range 300 {
			all.Go(func() {
				if _, err := c.Status(t.Context(), "job_1"); err != nil {
					t.Error(err)
				}
			})
		}
		all.Wait()
		if second.Load() != 301 {
			t.Errorf("%d reads over HTTP/2, want 301", second.Load())
		}
		for _, how := range []string{sumetest.BreakReset, sumetest.BreakChunked} {
			before := a.Stats().Reads
			a.SetFault("job_1", sumetest.Fault{Break: how})
			_, err := c.Status(t.Context(), "job_1")
			if f := fault(t, err); f.Class != poller.Network {
				t.Errorf("%s: got %+v, want a network fault", how, *f)
			}
			if reads := a.Stats().Reads - before; reads > 2 {
				t.Errorf("%s: the server saw %d reads, want at most 2", how, reads)
			}
		}
	})
	t.Run("by plain text", func(t *testing.T) {
		plain := strings.Replace(listen(t, a), "http:", "https:", 1)
		_, err := connect(t, plain).Status(t.Context(), "job_1")
		if f := fault(t, err); f.Class != poller.Network {
			t.Errorf("got %+v, want a network fault", *f)
		}
	})
}

// Each id is one escaped segment of a path, or is never sent.
func TestStatus_Path(t *testing.T) {
	t.Parallel()
	a := sumetest.New(sumetest.Options{Unknown: &sumetest.Plan{}})
	c := connect(t, listen(t, a))
	for id, path := range map[string]string{
		"job_1":                  "job_1",
		"a/b":                    "a%2Fb",
		"a/../b":                 "a%2F..%2Fb",
		"../../admin":            "..%2F..%2Fadmin",
		"a?b=c":                  "a%3Fb=c",
		"a#b":                    "a%23b",
		"a%2Fb":                  "a%252Fb",
		"%2e%2e":                 "%252e%252e",
		" a b ":                  "%20a%20b%20",
		"größe":                  "gr%C3%B6%C3%9Fe",
		"...":                    "...",
		"a;b,c+d&e=f:g@h$i!'()*": "a%3Bb%2Cc+d&e=f:g@h$i%21%27%28%29%2A",
		`"\<>[]{}|^` + "`":       "%22%5C%3C%3E%5B%5D%7B%7D%7C%5E%60",
		strings.Repeat("x", 300): strings.Repeat("x", 300),
	} {
		answer, err := c.Status(t.Context(), id)
		if err != nil || !answer.Terminal {
			t.Errorf("%q: got %+v, %v, want the end", id, answer, err)
		}
		if got, want := a.Stats().Jobs[id].Path, "/v1/jobs/"+path+"/status"; got != want {
			t.Errorf("%q: read at %s, want %s", id, got, want)
		}
	}
	before := a.Stats()
	for _, id := range []string{"", " ", "\u00a0", ".", "..", "a\nb", "a\x00b", "\x7f", "a\u0085b", "a\xffb"} {
		_, err := c.Status(t.Context(), id)
		if f := fault(t, err); f.Class != poller.Malformed || f.HTTPStatus != 0 || f.JSON {
			t.Errorf("%q: got %+v, want malformed without an answer", id, *f)
		}
	}
	if after := a.Stats(); after.Reads != before.Reads || after.Strays != 0 {
		t.Errorf("ids that cannot be one were sent: %d reads, %d strays", after.Reads-before.Reads, after.Strays)
	}
}
