package sume_test

import (
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"sumepoller/internal/poller"
	"sumepoller/internal/sume"
	"sumepoller/internal/sume/sumetest"
)

// h2 returns an API over HTTP/2 that knows job_1, and a client of it.
func h2(t *testing.T, streams int, timeout time.Duration, filter func(*sumetest.Conn) sumetest.Filter) (*sumetest.API, *sumetest.H2, *sume.Client) {
	t.Helper()
	a := sumetest.New(sumetest.Options{Latency: 10 * time.Millisecond})
	a.AddJob("job_1", sumetest.Plan{})
	s, err := sumetest.ListenH2(a, streams, filter)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Close)
	return a, s, connectWith(t, sume.Config{BaseURL: s.URL, Timeout: timeout, Roots: s.Pool}, fixedKeys{key: testKey})
}

// all reads n times, so many at once, and returns the faults.
func all(t *testing.T, c *sume.Client, n, atOnce int) (faults []poller.ReadError) {
	t.Helper()
	var mu sync.Mutex
	var done sync.WaitGroup
	turns := make(chan struct{}, atOnce)
	for range n {
		turns <- struct{}{}
		done.Go(func() {
			defer func() { <-turns }()
			if _, err := c.Status(t.Context(), "job_1"); err != nil {
				mu.Lock()
				defer mu.Unlock()
				faults = append(faults, *fault(t, err))
			}
		})
	}
	done.Wait()
	return faults
}

// filter is one of functions; a nil one passes every frame on.
type filter struct {
	fromClient, fromServer func(c *sumetest.Conn, f *sumetest.Frame) bool
}

func (x filter) FromClient(c *sumetest.Conn, f *sumetest.Frame) bool {
	return x.fromClient == nil || x.fromClient(c, f)
}

func (x filter) FromServer(c *sumetest.Conn, f *sumetest.Frame) bool {
	return x.fromServer == nil || x.fromServer(c, f)
}

// same gives every connection a filter that keeps nothing.
func same(x filter) func(*sumetest.Conn) sumetest.Filter {
	return func(*sumetest.Conn) sumetest.Filter { return x }
}

// reset answers a request by a reset of its stream.
func reset(code uint32) filter {
	return filter{fromClient: func(c *sumetest.Conn, f *sumetest.Frame) bool {
		if f.Type != sumetest.FrameHeaders {
			return true
		}
		_ = c.Send(sumetest.Frame{Type: sumetest.FrameReset, Stream: f.Stream, Payload: sumetest.Words(code)})
		return false
	}}
}

// sentTwice is how many reads more than asked for the API may see: on a busy
// machine the wait for a stream can end in the moment in which the request goes
// out, and it is sent again.
const sentTwice = 6

// A server that takes fewer streams than are asked of it costs nothing but time.
func TestStatusH2_FewStreams(t *testing.T) {
	t.Parallel()
	// late sends a connection's settings once the first request is there, as
	// over a long way.
	late := func(*sumetest.Conn) sumetest.Filter {
		asked, once := make(chan struct{}), sync.Once{}
		return filter{
			fromClient: func(_ *sumetest.Conn, f *sumetest.Frame) bool {
				if f.Type == sumetest.FrameHeaders {
					once.Do(func() { close(asked) })
				}
				return true
			},
			fromServer: func(*sumetest.Conn, *sumetest.Frame) bool {
				select {
				case <-asked:
				case <-t.Context().Done(): // a connection that nobody used
				}
				return true
			},
		}
	}
	// lowered sends another limit at the 50th request of a connection.
	lowered := func(to uint32) func(*sumetest.Conn) sumetest.Filter {
		const settings, ack, limit = 0x4, 0x1, 0x3
		return func(*sumetest.Conn) sumetest.Filter {
			var requests, acks int
			return filter{fromClient: func(c *sumetest.Conn, f *sumetest.Frame) bool {
				switch {
				case f.Type == sumetest.FrameHeaders:
					if requests++; requests == 50 {
						_ = c.Send(sumetest.Frame{Type: settings, Payload: append([]byte{0, limit}, sumetest.Words(to)...)})
					}
				case f.Type == settings && f.Flags&ack != 0:
					acks++
				}
				return f.Type != settings || f.Flags&ack == 0 || acks == 1
			}}
		}
	}
	for name, tt := range map[string]struct {
		streams int
		filter  func(*sumetest.Conn) sumetest.Filter
	}{
		"100, then 1": {100, lowered(1)}, "100, then 0": {100, lowered(0)},
		"1": {1, nil}, "3": {3, nil}, "10": {10, nil}, "1, sent late": {1, late}, "10, sent late": {10, late},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			a, _, c := h2(t, tt.streams, 15*time.Second, tt.filter)
			if faults := all(t, c, 600, 64); len(faults) > 0 {
				t.Errorf("%d faults, such as %+v", len(faults), faults[0])
			}
			if n := a.Stats().Reads; n < 600 || n > 600+sentTwice {
				t.Errorf("the API saw %d reads, want 600", n)
			}
		})
	}
}

// What the server refused unprocessed goes out again within the read's time.
func TestStatusH2_Refused(t *testing.T) {
	t.Parallel()
	t.Run("every connection goes away after 5", func(t *testing.T) {
		t.Parallel()
		a, _, c := h2(t, 0, 15*time.Second, func(*sumetest.Conn) sumetest.Filter {
			var streams int
			var last uint32
			return filter{fromClient: func(c *sumetest.Conn, f *sumetest.Frame) bool {
				if f.Type != sumetest.FrameHeaders {
					return f.Stream <= last
				}
				if streams++; streams <= 5 {
					last = f.Stream
					return true
				}
				_ = c.Send(sumetest.Frame{Type: sumetest.FrameGoAway, Payload: sumetest.Words(last, sumetest.CodeNone)})
				return false
			}}
		})
		if faults := all(t, c, 200, 64); len(faults) > 0 {
			t.Errorf("%d faults, such as %+v", len(faults), faults[0])
		}
		if n := a.Stats().Reads; n < 200 || n > 200+sentTwice {
			t.Errorf("the API saw %d reads, want 200", n)
		}
	})
	for name, x := range map[string]filter{
		"for ever":            reset(sumetest.CodeRefused),
		"as a protocol error": reset(sumetest.CodeProtocol),
		"by every connection": {fromClient: func(c *sumetest.Conn, f *sumetest.Frame) bool {
			_ = c.Send(sumetest.Frame{Type: sumetest.FrameGoAway, Payload: sumetest.Words(0, sumetest.CodeNone)})
			return f.Type != sumetest.FrameHeaders
		}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var requests atomic.Int64
			_, s, c := h2(t, 0, 2*time.Second, same(filter{fromClient: func(c *sumetest.Conn, f *sumetest.Frame) bool {
				if f.Type == sumetest.FrameHeaders {
					requests.Add(1)
				}
				return x.fromClient(c, f)
			}}))
			faults := all(t, c, 1, 1)
			if len(faults) != 1 || faults[0].Class != poller.Timeout || faults[0].Connection != 0 {
				t.Errorf("faults %+v, want one timeout", faults)
			}
			// 10 ms, doubling to a second, less and more by a half.
			if n := requests.Load(); n > 12 || s.Conns() > 12*maxGets {
				t.Errorf("%d requests on %d connections in 2 s", n, s.Conns())
			}
		})
	}
}

// maxGets is how often net/http may look for a connection in one attempt.
const maxGets = 6
