package sume

import (
	"context"
	"errors"
	"math/rand/v2"
	"net/http"
	"net/http/httptrace"
	"time"
)

// Causes of a canceled exchange or attempt.
var (
	errTimeout    = errors.New("the request's time is over")
	errSentEnough = errors.New("sent as often as allowed")
	errRefused    = errors.New("refused unprocessed")
)

const (
	// maxSent is how often one request may be sent. net/http repeats a GET each
	// time its kept connection is lost. Here it may do that once. A request
	// that the server refused without processing it does not count.
	maxSent = 2
	// The pause before a refused request is sent again doubles.
	minPause = 10 * time.Millisecond
	maxPause = time.Second
)

// response is a response of which at least the header arrived.
type response struct {
	status int
	header http.Header
	body   *buffer // nil if it was not read to its end
	broken error   // why it was not: an *exchangeError, or the context's error
}

func (r *response) release() {
	if r != nil && r.body != nil {
		r.body.release()
	}
}

// bytes returns the body, or nil if it was not read to its end.
func (r *response) bytes() []byte {
	if r.body == nil {
		return nil
	}
	return r.body.data
}

// exchange sends one request and reads its response, which the caller releases.
// limit, if above zero, bounds the time from the dial to the last byte. An error
// is an *exchangeError, unless ctx was canceled before its deadline: then it
// wraps ctx's error.
//
// A request that the server refused unprocessed is sent again after a pause, as
// long as there is time. A GET that was lost with an HTTP/2 connection is sent
// once more at once: many are lost together, and none of them is the cause.
func (c *Client) exchange(ctx context.Context, req *http.Request, limit time.Duration) (*response, error) {
	inner, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	if limit > 0 {
		timer := time.AfterFunc(limit, func() { cancel(errTimeout) })
		defer timer.Stop()
	}
	var sent int32
	var lost uint64
	for pause := minPause; ; {
		r, a, err := c.try(ctx, inner, req, maxSent-sent)
		if errors.Is(err, errRefused) {
			if err = a.wait(ctx, inner, pause/2+rand.N(pause)); err == nil {
				pause = min(2*pause, maxPause)
				continue
			}
		}
		undecided := true // the status does not decide, so that the body would have to
		failed := err
		if r != nil {
			undecided, failed = r.status >= 200 && r.status < 300, r.broken
		}
		var e *exchangeError
		if !errors.As(failed, &e) {
			return r, err
		}
		sent += a.sent.Load()
		again := lost == 0 && e.connection != 0 && a.shared.Load() && sent < maxSent && req.Method == http.MethodGet && undecided
		if lost == 0 {
			lost = e.connection
		}
		if e.connection = lost; !again {
			return r, err
		}
		r.release()
	}
}

// try sends the request, at most left times, and reads the response.
func (c *Client) try(ctx, inner context.Context, req *http.Request, left int32) (*response, *attempt, error) {
	inner, cancel := context.WithCancelCause(inner)
	defer cancel(nil)
	a := &attempt{client: c, cancel: cancel, left: left}
	defer a.stopSlot()
	req = req.WithContext(httptrace.WithClientTrace(inner, a.trace()))
	if req.GetBody != nil {
		req.Body, _ = req.GetBody() // an earlier attempt may have read it
	}
	resp, err := c.transport.RoundTrip(req)
	if err != nil {
		return nil, a, a.diagnose(ctx, inner, err)
	}
	defer func() { _ = resp.Body.Close() }()
	if a.conn != nil {
		a.conn.answered.Store(true)
	}
	r := &response{status: resp.StatusCode, header: resp.Header}
	if r.status < 200 { // such as 101: what follows is no body
		return r, a, nil
	}
	a.stage.Store(stageBody)
	r.body, err = c.bodies.read(inner, resp.Body)
	if err != nil {
		r.broken = a.diagnose(ctx, inner, err)
	}
	return r, a, nil
}
