package sume

import (
	"context"
	"crypto/tls"
	"errors"
	"net/http"
	"net/http/httptrace"
	"sync/atomic"
	"time"
)

// Why an exchange was broken off; each is the cause of its context's end.
var (
	errTimeout = errors.New("the request's time is over")
	errRepeats = errors.New("repeated often enough")
)

// reply is an answer whose status line came.
type reply struct {
	status int
	header http.Header
	body   *buffer // nil where it was not read whole
	broken error   // why it was not; a *trouble, or the context's error
}

func (r *reply) release() {
	if r.body != nil {
		r.body.release()
	}
}

// bytes returns the body, nil where it was not read whole.
func (r *reply) bytes() []byte {
	if r.body == nil {
		return nil
	}
	return r.body.data
}

// exchange sends one request and reads its answer. The caller releases the
// reply. The request's time is bounded by limit, where it is above zero, from
// the dial to the last byte. An error is a *trouble, except where ctx was
// cancelled for another reason than its deadline: then it wraps ctx's error.
func (c *Client) exchange(ctx context.Context, req *http.Request, limit time.Duration) (*reply, error) {
	inner, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	if limit > 0 {
		timer := time.AfterFunc(limit, func() { cancel(errTimeout) })
		defer timer.Stop()
	}
	a := &attempt{cancel: cancel}
	resp, err := c.transport.RoundTrip(req.WithContext(httptrace.WithClientTrace(inner, a.trace())))
	if err != nil {
		return nil, a.diagnose(ctx, inner, err)
	}
	defer func() { _ = resp.Body.Close() }()
	r := &reply{status: resp.StatusCode, header: resp.Header}
	if r.status < 200 { // such as 101: what follows is no body
		return r, nil
	}
	a.stage.Store(stageBody)
	r.body, err = c.bodies.read(inner, resp.Body)
	if err != nil {
		r.broken = a.diagnose(ctx, inner, err)
	}
	return r, nil
}

// maxSent is how often one request may go out: net/http repeats a GET by
// itself whenever a kept connection dies under it, once is enough.
const maxSent = 2

// attempt watches one request on its way.
type attempt struct {
	cancel context.CancelCauseFunc
	sent   atomic.Int32 // how often its header was written
	stage  atomic.Int32
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
			if a.sent.Load() >= maxSent {
				a.cancel(errRepeats)
			}
		},
		GotConn: func(info httptrace.GotConnInfo) {
			a.stage.Store(stageHeader)
			// The connection may be handed over before the cancelled context
			// is looked at; a closed one takes no further request. One of
			// HTTP/2 is shared and looks at the context by itself.
			if a.sent.Load() >= maxSent && !multiplexed(info) {
				_ = info.Conn.Close()
			}
		},
		WroteHeaders: func() { a.sent.Add(1) },
	}
}

func multiplexed(info httptrace.GotConnInfo) bool {
	conn, ok := info.Conn.(*tls.Conn)
	return ok && conn.ConnectionState().NegotiatedProtocol == "h2"
}
