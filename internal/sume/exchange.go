package sume

import (
	"context"
	"errors"
	"math/rand/v2"
	"net/http"
	"net/http/httptrace"
	"time"
)

// Why an exchange or one attempt of it was broken off; each is the cause of
// its context's end.
var (
	errTimeout = errors.New("the request's time is over")
	errRepeats = errors.New("repeated often enough")
	errRefused = errors.New("refused unprocessed")
)

const (
	// maxSent is how often one request may go out: net/http repeats a GET by
	// itself whenever a kept connection dies under it, once is enough. What the
	// server refused unprocessed was not sent.
	maxSent = 2
	// The pause before a refused request goes out again doubles.
	minPause = 10 * time.Millisecond
	maxPause = time.Second
)

// reply is an answer whose status line came.
type reply struct {
	status int
	header http.Header
	body   *buffer // nil where it was not read whole
	broken error   // why it was not; a *trouble, or the context's error
}

func (r *reply) release() {
	if r != nil && r.body != nil {
		r.body.release()
	}
}

// failed returns why no whole answer came, where err is why there is none at all.
func (r *reply) failed(err error) error {
	if r == nil {
		return err
	}
	return r.broken
}

// undecided reports whether the reply's body would have decided: its status
// does not.
func (r *reply) undecided() bool {
	return r == nil || r.status >= http.StatusOK && r.status < http.StatusMultipleChoices
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
//
// A request that the server refused unprocessed goes out again, after a pause,
// as long as there is time. A GET that was lost with an HTTP/2 connection goes
// out once more at once: many are lost together, and none of them is at fault.
func (c *Client) exchange(ctx context.Context, req *http.Request, limit time.Duration) (*reply, error) {
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
			if err = a.wait(ctx, inner, jitter(pause)); err == nil {
				pause = min(2*pause, maxPause)
				continue
			}
		}
		var t *trouble
		if !errors.As(r.failed(err), &t) {
			return r, err
		}
		sent += a.sent.Load()
		again := lost == 0 && t.connection != 0 && a.shared.Load() && sent < maxSent &&
			req.Method == http.MethodGet && r.undecided()
		if lost == 0 {
			lost = t.connection
		}
		if t.connection = lost; !again {
			return r, err
		}
		r.release()
	}
}

// try sends the request, at most left times, and reads the answer.
func (c *Client) try(ctx, inner context.Context, req *http.Request, left int32) (*reply, *attempt, error) {
	inner, cancel := context.WithCancelCause(inner)
	defer cancel(nil)
	a := &attempt{client: c, cancel: cancel, left: left}
	defer a.stop()
	req = req.WithContext(httptrace.WithClientTrace(inner, a.trace()))
	if req.GetBody != nil {
		req.Body, _ = req.GetBody() // the one before may have been read
	}
	resp, err := c.transport.RoundTrip(req)
	if err != nil {
		return nil, a, a.diagnose(ctx, inner, err)
	}
	defer func() { _ = resp.Body.Close() }()
	if a.conn != nil {
		a.conn.answered.Store(true)
	}
	r := &reply{status: resp.StatusCode, header: resp.Header}
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

func jitter(d time.Duration) time.Duration { return d/2 + rand.N(d) }
