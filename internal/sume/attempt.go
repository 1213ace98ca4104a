package sume

import (
	"context"
	"crypto/tls"
	"net"
	"net/http/httptrace"
	"sync/atomic"
	"time"
)

const (
	// slotWait is how long a request waits for a stream of the connection that
	// it was given. net/http of Go 1.26 can block there until the request's end:
	// where a server lowers its limit of streams, the requests that wait count
	// against one another.
	slotWait     = 500 * time.Millisecond
	settingsWait = 50 * time.Millisecond
	// maxGets is how often in one attempt net/http may look for a connection. It
	// does so at once each time, also where a server ends every new connection.
	maxGets = 6
)

// attempt watches one call of net/http's RoundTrip. That may send the request
// more than once: over HTTP/1.1 where a kept connection died under it, over
// HTTP/2 only what the server said it had not processed.
type attempt struct {
	client *Client
	cancel context.CancelCauseFunc
	left   int32 // how often the request may go out
	gets   atomic.Int32
	sent   atomic.Int32 // how often its header was written
	stage  atomic.Int32
	shared atomic.Bool // the latest connection is HTTP/2
	conn   *conn       // the latest connection
	group  uint64      // of it, when it was given
	slot   *time.Timer
}

// Stages of a request.
const (
	stageConnect int32 = iota
	stageHeader
	stageBody
)

func (a *attempt) trace() *httptrace.ClientTrace {
	return &httptrace.ClientTrace{
		GetConn: func(string) {
			if a.gets.Add(1) > maxGets {
				a.cancel(errRefused)
			}
			a.repeated()
		},
		GotConn: a.gotConn,
		WroteHeaders: func() {
			a.sent.Add(1)
			if a.slot != nil {
				a.slot.Stop()
			}
		},
	}
}

// repeated breaks the attempt off where net/http is about to send the request
// again and must not. A cancelled request is not sent over HTTP/2.
func (a *attempt) repeated() {
	sent := a.sent.Load()
	switch {
	case sent > 0 && a.shared.Load():
		a.cancel(errRefused)
	case sent >= a.left:
		a.cancel(errRepeats)
	}
}

func (a *attempt) gotConn(info httptrace.GotConnInfo) {
	a.repeated() // net/http does not call GetConn for a connection that nobody has used
	a.stage.Store(stageHeader)
	c, shared := unwrap(info.Conn)
	a.shared.Store(shared)
	if a.conn = c; c != nil {
		a.group = c.group.Load()
	}
	if shared {
		if c != nil && !c.take() {
			a.cancel(errRefused)
			return
		}
		a.stop()
		a.slot = time.AfterFunc(slotWait, func() {
			if a.sent.Load() == 0 {
				a.cancel(errRefused)
			}
		})
		return
	}
	// The connection may be handed over before the cancelled context is looked
	// at; a closed one takes no further request.
	if a.sent.Load() >= a.left {
		_ = info.Conn.Close()
	}
}

func (a *attempt) stop() {
	if a.slot != nil {
		a.slot.Stop()
	}
}

// wait pauses before the next attempt, where the request's time allows it.
func (a *attempt) wait(ctx, inner context.Context, pause time.Duration) error {
	timer := time.NewTimer(pause)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-inner.Done():
		return a.diagnose(ctx, inner, inner.Err())
	}
}

// lost returns the number that the requests lost together with this one share.
// Those that the connection is given from now on, should it still live, have
// another.
func (a *attempt) lost() uint64 {
	if a.conn == nil {
		return 0
	}
	a.conn.group.CompareAndSwap(a.group, a.client.groups.Add(1))
	return a.group
}

// conn is a connection to the API, or to the proxy before it.
type conn struct {
	net.Conn
	group    atomic.Uint64
	taken    atomic.Int64 // when its first request came, in nanoseconds
	answered atomic.Bool
}

// take reports whether a request may go out over an HTTP/2 connection. A new
// one carries one request until its server has answered, or has had the time
// to tell how many it takes: net/http sends it a hundred before it knows.
func (c *conn) take() bool {
	now := time.Now().UnixNano()
	return c.taken.CompareAndSwap(0, now) || c.answered.Load() || time.Duration(now-c.taken.Load()) > settingsWait
}

// unwrap finds the connection below TLS; shared where HTTP/2 is spoken on it.
func unwrap(nc net.Conn) (c *conn, shared bool) {
	for {
		switch under := nc.(type) {
		case *conn:
			return under, shared
		case *tls.Conn:
			shared = shared || under.ConnectionState().NegotiatedProtocol == "h2"
			nc = under.NetConn()
		default:
			return nil, shared
		}
	}
}
