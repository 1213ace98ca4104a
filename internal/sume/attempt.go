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
	// slotWait is how long a request waits for a stream of its connection. With
	// Go 1.26 net/http can block there until the request's timeout: if a server
	// lowers its limit of streams, the waiting requests count against each other.
	slotWait     = 500 * time.Millisecond
	settingsWait = 50 * time.Millisecond
	// maxGets is how often net/http may ask for a connection in one attempt. It
	// asks again at once, also if a server closes every new connection.
	maxGets = 6
)

// attempt watches one call of net/http's RoundTrip, which can send the request
// more than once: over HTTP/1.1 if a kept connection died under it, over HTTP/2
// only if the server said that it had not processed it.
type attempt struct {
	client *Client
	cancel context.CancelCauseFunc
	left   int32 // how often the request may be sent
	gets   atomic.Int32
	sent   atomic.Int32 // how often its header was written
	stage  atomic.Int32
	shared atomic.Bool // the latest connection speaks HTTP/2
	conn   *conn       // the latest connection
	group  uint64      // its group when it was given
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
			a.checkSent()
		},
		GotConn: a.gotConn,
		WroteHeaders: func() {
			a.sent.Add(1)
			a.stopSlot()
		},
	}
}

// checkSent ends the attempt if net/http is about to send the request again and
// must not. Over HTTP/2 a canceled request is not sent.
func (a *attempt) checkSent() {
	sent := a.sent.Load()
	switch {
	case sent > 0 && a.shared.Load():
		a.cancel(errRefused)
	case sent >= a.left:
		a.cancel(errSentEnough)
	}
}

func (a *attempt) gotConn(info httptrace.GotConnInfo) {
	a.checkSent() // net/http does not call GetConn for a connection that is still unused
	a.stage.Store(stageHeader)
	c, shared := unwrap(info.Conn)
	a.shared.Store(shared)
	if a.conn = c; c != nil {
		a.group = c.group.Load()
	}
	if !shared {
		// net/http can still write to the connection before it notices that the
		// context is canceled, but not to a closed one.
		if a.sent.Load() >= a.left {
			_ = info.Conn.Close()
		}
		return
	}
	if c != nil && !c.take() {
		a.cancel(errRefused)
		return
	}
	a.stopSlot()
	a.slot = time.AfterFunc(slotWait, func() {
		if a.sent.Load() == 0 {
			a.cancel(errRefused)
		}
	})
}

func (a *attempt) stopSlot() {
	if a.slot != nil {
		a.slot.Stop()
	}
}

// wait pauses before the next attempt, if the request's time allows it.
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

// lost returns the group of this request: the requests that were lost together
// with it. Requests that the connection gets from now on have a new group.
func (a *attempt) lost() uint64 {
	if a.conn == nil {
		return 0
	}
	a.conn.group.CompareAndSwap(a.group, a.client.groups.Add(1))
	return a.group
}

// conn is a connection to the API, or to a proxy in front of it.
type conn struct {
	net.Conn
	group    atomic.Uint64
	taken    atomic.Int64 // time of its first request, in nanoseconds
	answered atomic.Bool
}

// take reports whether a request may be sent over an HTTP/2 connection. A new
// one carries one request until the server has answered, or has had the time to
// send its limit of streams: net/http sends up to a hundred before it knows.
func (c *conn) take() bool {
	now := time.Now().UnixNano()
	return c.taken.CompareAndSwap(0, now) || c.answered.Load() || time.Duration(now-c.taken.Load()) > settingsWait
}

// unwrap returns the connection below TLS, and whether it speaks HTTP/2.
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
