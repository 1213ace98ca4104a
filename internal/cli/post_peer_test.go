package cli_test

import (
	"context"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"sumepoller/internal/devstack"
)

// Each peer ends the connection without an answer.
func TestPost_Connection(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ send, want string }{
		"cut":        {"", "before its answer was complete"},
		"not HTTP":   {"SSH-2.0-Secret\r\n", "did not answer as an HTTP server does"},
		"cut header": {"HTTP/1.1 200 OK\r\nSecret", "did not answer"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			l, err := net.Listen("tcp", "127.0.0.1:0")
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { _ = l.Close() })
			go func() {
				for {
					conn, err := l.Accept()
					if err != nil {
						return
					}
					_, _ = conn.Read(make([]byte, 1<<16))
					_, _ = conn.Write([]byte(c.send))
					_ = conn.Close()
				}
			}()
			line := invocation(t, "submit", "http://"+l.Addr().String())
			if !strings.Contains(line, c.want) || !strings.Contains(line, unknown) || strings.Contains(line, "Secret") {
				t.Errorf("got %q, want %q and %q", line, c.want, unknown)
			}
		})
	}
}

// TestPost_OtherFunction sends each request to the other built function. The
// payload is refused before a database or the API is needed.
func TestPost_OtherFunction(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ function, what, want string }{
		{"poller", "submit", "the poller answered instead of the submit function, and nothing was bought"},
		{"submit", "status", "the submit function answered instead of the poller"},
	} {
		t.Run(c.function, func(t *testing.T) {
			t.Parallel()
			ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
			defer cancel()
			bootstrap, err := devstack.Bootstrap(ctx, c.function)
			if err != nil {
				t.Fatal(err)
			}
			f, err := devstack.StartFunction(ctx, c.function, bootstrap, map[string]string{
				"DATABASE_URL": "postgres://nobody@127.0.0.1:1/none", "SUME_API_KEY_SECRET_ID": "none",
				"AWS_REGION": "us-east-1", "AWS_ENDPOINT_URL": "http://127.0.0.1:1",
			}, time.Minute)
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(f.Stop)
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				payload, _ := io.ReadAll(r.Body)
				result, err := f.Invoke(r.Context(), payload)
				if err != nil {
					t.Error(err)
				}
				_, _ = w.Write(result.Body())
			}))
			t.Cleanup(server.Close)
			if line := invocation(t, c.what, server.URL); !strings.Contains(line, c.want) || !strings.Contains(line, "FUNCTION_URL") {
				t.Errorf("got %q, want %q", line, c.want)
			}
		})
	}
}
