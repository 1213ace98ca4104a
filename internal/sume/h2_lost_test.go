package sume_test

import (
	"fmt"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"sumepoller/internal/poller"
	"sumepoller/internal/sume/sumetest"
)

// Reads that are lost together go out once more; those that are lost again
// share a number.
func TestStatusH2_Lost(t *testing.T) {
	t.Parallel()
	for name, lose := range map[string]func(c *sumetest.Conn, streams []uint32){
		"cut off": func(c *sumetest.Conn, _ []uint32) { c.Drop() },
		"goes away": func(c *sumetest.Conn, streams []uint32) {
			_ = c.Send(sumetest.Frame{Type: sumetest.FrameGoAway, Payload: sumetest.Words(slices.Max(streams), sumetest.CodeInternal)})
			c.Drop()
		},
		"silent": func(*sumetest.Conn, []uint32) {},
	} {
		for _, again := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s, again %v", name, again), func(t *testing.T) {
				t.Parallel()
				x := &losing{lose: lose, again: again}
				a, _, c := h2(t, 0, 6*time.Second, x.filter)
				if faults := all(t, c, 1, 1); len(faults) > 0 {
					t.Fatalf("the first read: %+v", faults)
				}
				x.armed.Store(true)
				faults := all(t, c, atOnce, atOnce)
				if n := x.sent.Load(); !again && n != 2*atOnce {
					t.Errorf("%d requests, want each read to go out twice", n)
				}
				if !again {
					if n := a.Stats().Answered; len(faults) > 0 || n < 1+atOnce {
						t.Errorf("the API answered %d reads, %d faults: %+v", n, len(faults), faults[:min(1, len(faults))])
					}
					return
				}
				if len(faults) != atOnce {
					t.Fatalf("%d faults, want %d", len(faults), atOnce)
				}
				for _, f := range faults {
					if f.Connection == 0 || f.Connection != faults[0].Connection || f.HTTPStatus != 0 {
						t.Fatalf("got %+v beside %+v, want the number of the first connection", f, faults[0])
					}
				}
			})
		}
	}
}

const atOnce = 64

// losing loses what is sent after it was armed: on the first connection once
// all reads are on it, and, if again, on the others each by itself.
type losing struct {
	lose  func(c *sumetest.Conn, streams []uint32)
	again bool
	armed atomic.Bool
	sent  atomic.Int64
}

func (x *losing) filter(c *sumetest.Conn) sumetest.Filter {
	var streams []uint32
	return filter{fromClient: func(c *sumetest.Conn, f *sumetest.Frame) bool {
		if !x.armed.Load() {
			return true
		}
		request := f.Type == sumetest.FrameHeaders
		if request {
			x.sent.Add(1)
		}
		if c.Number > 1 && !x.again {
			return true
		}
		if !request {
			return len(streams) == 0 // else silent, to pings as well
		}
		if streams = append(streams, f.Stream); c.Number > 1 || len(streams) == atOnce {
			x.lose(c, streams)
		}
		return false
	}}
}

// A server that resets streams leaves their connection alive.
func TestStatusH2_Resets(t *testing.T) {
	t.Parallel()
	reset := sumetest.Fault{From: 2, Times: atOnce, Delay: 200 * time.Millisecond, Break: sumetest.BreakReset}
	t.Run("once", func(t *testing.T) {
		t.Parallel()
		a, s, c := h2(t, 0, 6*time.Second, nil)
		a.SetFault("job_1", reset)
		all(t, c, 1, 1)
		faults := all(t, c, atOnce, atOnce)
		if n := a.Stats().Reads; len(faults) > 0 || n != 1+2*atOnce || s.Conns() != 1 {
			t.Errorf("%d reads on %d connections, %d faults", n, s.Conns(), len(faults))
		}
	})
	t.Run("always", func(t *testing.T) {
		t.Parallel()
		a, _, c := h2(t, 0, 6*time.Second, nil)
		always := reset
		always.Times = 0
		a.SetFault("job_1", always)
		all(t, c, 1, 1)
		seen := map[uint64]bool{}
		for range 3 {
			faults := all(t, c, atOnce, atOnce)
			for _, f := range faults {
				if f.Class != poller.Network || f.Connection != faults[0].Connection || len(faults) != atOnce {
					t.Fatalf("%d faults, %+v beside %+v, want the same number", len(faults), f, faults[0])
				}
			}
			seen[faults[0].Connection] = true
		}
		if n := a.Stats().Reads; n != 1+3*2*atOnce || len(seen) != 3 || seen[0] {
			t.Errorf("%d reads, numbers %v; want each read to go out twice, and a number for each time", n, seen)
		}
	})
}
