package main_test

import (
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"sumepoller/internal/config"
	"sumepoller/internal/poller"
	"sumepoller/internal/sume/sumetest"
)

// h2 starts a sandbox whose API speaks HTTP/2, with so many streams to a
// connection where above zero.
func (s *stage) h2(t *testing.T, streams int, filter func(*sumetest.Conn) sumetest.Filter, environ ...string) (*sumetest.H2, *sandbox) {
	t.Helper()
	server, err := sumetest.ListenH2(s.api, streams, filter)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(server.Close)
	trusted := filepath.Join(t.TempDir(), "roots.pem")
	if err := os.WriteFile(trusted, server.PEM, 0o600); err != nil {
		t.Fatal(err)
	}
	return server, s.sandbox(t, append(environ, config.APIBaseURL+"="+server.URL, "SSL_CERT_FILE="+trusted)...)
}

// One connection that carries 64 reads and is dropped costs none of them.
func TestConnection_H2Dropped(t *testing.T) {
	t.Parallel()
	for name, end := range map[string]func(c *sumetest.Conn, last uint32){
		"cut off": func(c *sumetest.Conn, _ uint32) { c.Drop() },
		"goes away": func(c *sumetest.Conn, last uint32) {
			_ = c.Send(sumetest.Frame{Type: sumetest.FrameGoAway, Payload: sumetest.Words(last, sumetest.CodeInternal)})
			c.Drop()
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newStage(t)
			s.slow(50*time.Millisecond, 100*time.Millisecond)
			s.due(t, sumetest.Plan{}, ids("job", 600)...)
			_, b := s.h2(t, 0, func(c *sumetest.Conn) sumetest.Filter {
				if c.Number > 1 {
					return nil
				}
				return &endsAfter{requests: 200, end: end}
			})
			got := b.tick(t)
			if got.Finished["completed"] != 600 || got.Errors[poller.Network] > 0 || got.Stopped != poller.StoppedDrained {
				t.Errorf("summary %+v", got)
			}
			if n := s.api.Stats().Reads; n < 600 || n > 600+64 {
				t.Errorf("the API saw %d reads, want 600 and those that were lost", n)
			}
			s.zero(t, charged)
			s.zero(t, held)
		})
	}
}

// endsAfter ends a connection at a request.
type endsAfter struct {
	requests int
	end      func(c *sumetest.Conn, last uint32)
}

func (x *endsAfter) FromClient(c *sumetest.Conn, f *sumetest.Frame) bool {
	if f.Type == sumetest.FrameHeaders {
		if x.requests--; x.requests == 0 {
			x.end(c, f.Stream)
		}
	}
	return true
}

func (*endsAfter) FromServer(*sumetest.Conn, *sumetest.Frame) bool { return true }

// A server that takes one stream at a time refuses the others unprocessed.
func TestConnection_H2OneStream(t *testing.T) {
	t.Parallel()
	s := newStage(t)
	s.slow(10*time.Millisecond, 30*time.Millisecond)
	s.due(t, sumetest.Plan{}, ids("job", 600)...)
	_, b := s.h2(t, 1, nil)
	got := b.tick(t)
	if got.Finished["completed"] != 600 || got.Errors[poller.Network]+got.Errors[poller.Timeout] > 0 || got.Stopped != poller.StoppedDrained {
		t.Errorf("summary %+v", got)
	}
	// On a busy machine the wait for the stream can end in the moment in which a
	// request goes out, and it is sent again.
	if n := s.api.Stats().Reads; n < 600 || n > 606 {
		t.Errorf("the API saw %d reads, want 600", n)
	}
	s.zero(t, charged)
}

// A cache between function and API keeps each answer for an hour, but for
// requests that want none.
func TestConnection_CachedAnswers(t *testing.T) {
	t.Parallel()
	s := newStage(t)
	var kept sync.Map
	cache, err := sumetest.Listen(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		answer, ok := kept.Load(r.URL.Path)
		if !ok || r.Header.Get("Cache-Control") == "no-cache" {
			recorded := httptest.NewRecorder()
			s.api.ServeHTTP(recorded, r)
			answer = recorded
			kept.Store(r.URL.Path, recorded)
		}
		w.Header().Set("Content-Type", "application/json")
		_, _ = w.Write(answer.(*httptest.ResponseRecorder).Body.Bytes())
	}))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(cache.Close)
	s.due(t, sumetest.Plan{Reads: 2, Hint: 1}, "job_1")
	got := s.sandbox(t, config.APIBaseURL+"="+cache.URL, "POLL_BUDGET=15s").tick(t)
	if n := s.api.Stats().Reads; got.Finished["completed"] != 1 || n != 3 {
		t.Errorf("the API saw %d reads, want 3; summary %+v", n, got)
	}
}

// A cache that ignores no-cache is named once, by the age of its answers.
func TestConnection_AgedAnswers(t *testing.T) {
	t.Parallel()
	s := newStage(t)
	s.due(t, sumetest.Plan{Reads: 1, Hint: 2}, ids("job", 5)...)
	s.api.SetFault("", sumetest.Fault{Header: map[string]string{"Age": "60"}})
	b := s.sandbox(t, "POLL_BUDGET=8s")
	b.tick(t)
	s.ended(t, map[string]int{"completed": 5})
	if n := strings.Count(b.Log(), `"age_seconds":60`); n != 1 {
		t.Errorf("%d warnings of the age, want one:\n%s", n, b.Log())
	}
}
