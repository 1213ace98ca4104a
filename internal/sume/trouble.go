package sume

import (
	"compress/flate"
	"compress/gzip"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"syscall"

	"sumepoller/internal/poller"
)

// trouble is an exchange that brought no whole answer. It does not keep the
// error it comes from, which may name the URL.
type trouble struct {
	class      poller.Class
	reason     string
	connection uint64 // see poller.Fault
}

func (t *trouble) Error() string { return string(t.class) + " " + t.reason }

// fault returns what a read without any answer came to.
func (t *trouble) fault() *poller.ReadError {
	return &poller.ReadError{Class: t.class, Reason: t.reason, RetryAfter: -1, Connection: t.connection}
}

// diagnose tells why an attempt under inner, a child of ctx, ended in err. It
// returns errRefused where the request may go out again at no cost.
func (a *attempt) diagnose(ctx, inner context.Context, err error) error {
	stage := a.stage.Load()
	switch cause := context.Cause(inner); {
	case errors.Is(cause, errTimeout):
		return timedOut(stage)
	case errors.Is(cause, errRefused):
		return errRefused
	case errors.Is(cause, errRepeats):
		return &trouble{class: poller.Network, reason: "connection lost again", connection: a.lost()}
	case cause != nil && errors.Is(ctx.Err(), context.DeadlineExceeded):
		return timedOut(stage)
	case cause != nil && ctx.Err() != nil:
		return fmt.Errorf("sume request: %w", ctx.Err())
	}
	if timeout := net.Error(nil); errors.As(err, &timeout) && timeout.Timeout() {
		return timedOut(stage)
	}
	t := classify(stage, err)
	if t.class == poller.Network && stage != stageConnect {
		t.connection = a.lost()
	}
	return t
}

func timedOut(stage int32) *trouble { return &trouble{class: poller.Timeout, reason: waiting(stage)} }

func waiting(stage int32) string {
	switch stage {
	case stageConnect:
		return "connecting"
	case stageHeader:
		return "waiting for the answer"
	}
	return "reading the body"
}

// classify finds the class and words of an error that no context caused.
func classify(stage int32, err error) *trouble {
	var (
		dns     *net.DNSError
		cert    *tls.CertificateVerificationError
		record  tls.RecordHeaderError
		corrupt flate.CorruptInputError
	)
	switch {
	case errors.Is(err, errTooLarge):
		return &trouble{class: poller.Malformed, reason: "too large"}
	case errors.Is(err, gzip.ErrHeader), errors.Is(err, gzip.ErrChecksum), errors.As(err, &corrupt):
		return &trouble{class: poller.Malformed, reason: "broken compression"}
	case errors.As(err, &dns):
		return &trouble{class: poller.Network, reason: "host name not found"}
	case errors.As(err, &cert):
		return &trouble{class: poller.Network, reason: "certificate not trusted"}
	case errors.As(err, &record):
		return &trouble{class: poller.Network, reason: "no TLS on the other side"}
	case errors.Is(err, syscall.ECONNREFUSED):
		return &trouble{class: poller.Network, reason: "connection refused"}
	case errors.Is(err, syscall.ECONNRESET), errors.Is(err, syscall.EPIPE):
		return &trouble{class: poller.Network, reason: "connection reset"}
	case stage == stageBody && errors.Is(err, io.ErrUnexpectedEOF):
		return &trouble{class: poller.Network, reason: "body cut off"}
	case stage == stageConnect:
		return &trouble{class: poller.Network, reason: "no connection"}
	}
	return &trouble{class: poller.Network, reason: "connection lost"}
}
