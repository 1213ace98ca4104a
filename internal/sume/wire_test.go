package sume_test

import (
	"bufio"
	"crypto/tls"
	"crypto/x509"
	"io"
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

const finished = `{"terminal":true,"status":"completed"}`

// speak serves connections by a function, which may return at any time.
func speak(t *testing.T, serve func(conn net.Conn, in *bufio.Reader)) (url string) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	var all sync.WaitGroup
	all.Go(func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			all.Go(func() {
				defer func() { _ = conn.Close() }()
				serve(conn, bufio.NewReader(conn))
			})
		}
	})
	t.Cleanup(func() {
		_ = l.Close()
		all.Wait()
	})
	return "http://" + l.Addr().String()
}

// answers sends a string for each request until the client disconnects.
func answers(text string) func(net.Conn, *bufio.Reader) {
	return func(conn net.Conn, in *bufio.Reader) {
		for {
			if _, err := http.ReadRequest(in); err != nil {
				return
			}
			_, _ = io.WriteString(conn, text)
		}
	}
}

// What no handler sends: each read comes to one end.
func TestStatus_InvalidHTTP(t *testing.T) {
	t.Parallel()
	const ok, typed, long = "HTTP/1.1 200 OK\r\n", "Content-Type: application/json\r\n", "Content-Length: 38\r\n"
	for name, tt := range map[string]struct {
		serve func(net.Conn, *bufio.Reader)
		class poller.Class // empty: the job's end
	}{
		"early hints":           {answers(strings.Repeat("HTTP/1.1 103 Early Hints\r\nLink: <https://cdn.test>\r\n\r\n", 3) + ok + typed + long + "\r\n" + finished), ""},
		"1xx without end":       {endless("HTTP/1.1 102 Processing\r\nX: https://cdn.test\r\n\r\n"), poller.Network},
		"trailers":              {answers(ok + typed + "Transfer-Encoding: chunked\r\nTrailer: X\r\n\r\n26\r\n" + finished + "\r\n0\r\nX: https://cdn.test\r\n\r\n"), ""},
		"header without end":    {endless(ok + "X: https://cdn.test\r\n"), poller.Network},
		"header that stops":     {answers(ok + "X: https://"), poller.Timeout},
		"two lengths":           {answers(ok + typed + long + "Content-Length: 12\r\n\r\n" + finished), poller.Network},
		"one length, twice":     {answers(ok + typed + long + long + "\r\n" + finished), ""},
		"negative length":       {answers(ok + typed + "Content-Length: -1\r\n\r\n" + finished), poller.Network},
		"no HTTP":               {answers("https://cdn.test says no\r\n\r\n"), poller.Network},
		"a space in the header": {answers(ok + "X Y: https://cdn.test\r\n" + long + "\r\n" + finished), ""},
		"chunk of no size":      {answers(ok + typed + "Transfer-Encoding: chunked\r\n\r\nhttps://cdn.test\r\n"), poller.Network},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := connectWith(t, sume.Config{BaseURL: speak(t, tt.serve), Timeout: time.Second}, fixedKeys{key: testKey})
			got, err := c.Status(t.Context(), "job_1")
			if tt.class == "" {
				if err != nil || got.Status != "completed" {
					t.Errorf("got %+v, %v, want completed", got, err)
				}
				return
			}
			if f := fault(t, err); f.Class != tt.class || strings.Contains(f.Error(), "cdn") {
				t.Errorf("got %+v, %v, want %s", f, err, tt.class)
			}
		})
	}
}

// endless sends a string again and again.
func endless(text string) func(net.Conn, *bufio.Reader) {
	return func(conn net.Conn, in *bufio.Reader) {
		if _, err := http.ReadRequest(in); err != nil {
			return
		}
		for {
			if _, err := io.WriteString(conn, text); err != nil {
				return
			}
		}
	}
}

func TestStatus_ClosedBetweenAnswers(t *testing.T) {
	t.Parallel()
	c := connect(t, speak(t, func(conn net.Conn, in *bufio.Reader) {
		if _, err := http.ReadRequest(in); err == nil {
			_, _ = io.WriteString(conn, "HTTP/1.1 200 OK\r\nContent-Length: 38\r\n\r\n"+finished)
		}
	}))
	for range 100 {
		if _, err := c.Status(t.Context(), "job_1"); err != nil {
			t.Fatal(err)
		}
	}
}

// A server that answers before it was asked is lost, or right by chance.
func TestStatus_UnsolicitedAnswer(t *testing.T) {
	t.Parallel()
	c := connect(t, speak(t, func(conn net.Conn, in *bufio.Reader) {
		_, _ = io.WriteString(conn, "HTTP/1.1 200 OK\r\nContent-Length: 38\r\n\r\n"+finished)
		_, _ = http.ReadRequest(in)
	}))
	for range 20 {
		if _, err := c.Status(t.Context(), "job_1"); err != nil {
			if f := fault(t, err); f.Class != poller.Network {
				t.Errorf("got %+v, want a network fault", f)
			}
		}
	}
}

// HTTP/2 is switched off while reads are on their way.
func TestStatusH2_SwitchedOff(t *testing.T) {
	t.Parallel()
	a := sumetest.New(sumetest.Options{Latency: 5 * time.Millisecond})
	a.AddJob("job_1", sumetest.Plan{})
	var off atomic.Bool
	s := httptest.NewUnstartedServer(a)
	s.EnableHTTP2 = true
	s.TLS = &tls.Config{}
	s.TLS.GetConfigForClient = func(*tls.ClientHelloInfo) (*tls.Config, error) {
		if !off.Load() {
			return nil, nil
		}
		return &tls.Config{Certificates: s.TLS.Certificates, NextProtos: []string{"http/1.1"}}, nil
	}
	s.StartTLS()
	t.Cleanup(s.Close)
	pool := x509.NewCertPool()
	pool.AddCert(s.Certificate())
	c := connectWith(t, sume.Config{BaseURL: s.URL, Timeout: 15 * time.Second, Roots: pool}, fixedKeys{key: testKey})
	if faults := all(t, c, 64, 64); len(faults) > 0 {
		t.Fatalf("before: %+v", faults)
	}
	off.Store(true)
	s.CloseClientConnections()
	if faults := all(t, c, 200, 64); len(faults) > 0 {
		t.Errorf("%d faults, such as %+v", len(faults), faults[0])
	}
}

// An answer over HTTP/2 that is longer than it says is none.
func TestStatusH2_LongerThanItSays(t *testing.T) {
	t.Parallel()
	const data, end = 0x0, 0x1
	_, _, c := h2(t, 0, 5*time.Second, same(filter{fromServer: func(c *sumetest.Conn, f *sumetest.Frame) bool {
		if f.Type == data && f.Flags&end != 0 {
			_ = c.Send(sumetest.Frame{Type: data, Stream: f.Stream, Payload: []byte(sumetest.SignedURL + strings.Repeat("x", 100))})
		}
		return true
	}}))
	faults := all(t, c, 1, 1)
	if len(faults) != 1 || faults[0].Class != poller.Network || strings.Contains(faults[0].Error(), "cdn") {
		t.Errorf("faults %+v, want one of the network", faults)
	}
}
