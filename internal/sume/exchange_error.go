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

// exchangeError is why an exchange brought no complete response. It does not
// wrap its cause, whose text can hold the URL.
type exchangeError struct {
	class      poller.Class
	reason     string
	connection uint64 // see poller.ReadError
}

func (e *exchangeError) Error() string { return string(e.class) + " " + e.reason }

// readError returns the error of a read without a status line.
func (e *exchangeError) readError() *poller.ReadError {
	return &poller.ReadError{Class: e.class, Reason: e.reason, RetryAfter: -1, Connection: e.connection}
}

// diagnose returns why an attempt under inner, a child of ctx, ended with err.
// It returns errRefused if the request may be sent again at no cost.
func (a *attempt) diagnose(ctx, inner context.Context, err error) error {
	stage := a.stage.Load()
	var network net.Error
	switch cause := context.Cause(inner); {
	case errors.Is(cause, errTimeout):
		return timedOut(stage)
	case errors.Is(cause, errRefused):
		return errRefused
	case errors.Is(cause, errSentEnough):
		return &exchangeError{class: poller.Network, reason: "connection lost again", connection: a.lost()}
	case cause != nil && errors.Is(ctx.Err(), context.DeadlineExceeded):
		return timedOut(stage)
	case cause != nil && ctx.Err() != nil:
		return fmt.Errorf("sume request: %w", ctx.Err())
	case errors.As(err, &network) && network.Timeout():
		return timedOut(stage)
	}
	e := &exchangeError{}
	if e.class, e.reason = classify(stage, err); e.class == poller.Network && stage != stageConnect {
		e.connection = a.lost()
	}
	return e
}

func timedOut(stage int32) *exchangeError {
	return &exchangeError{class: poller.Timeout, reason: [...]string{
		stageConnect: "connecting",
		stageHeader:  "waiting for the answer",
		stageBody:    "reading the body",
	}[stage]}
}

// classify returns the class and the reason of an error that no context caused.
func classify(stage int32, err error) (poller.Class, string) {
	switch {
	case errors.Is(err, errTooLarge):
		return poller.Malformed, "too large"
	case errors.Is(err, gzip.ErrHeader), errors.Is(err, gzip.ErrChecksum), errors.As(err, new(flate.CorruptInputError)):
		return poller.Malformed, "broken compression"
	case errors.As(err, new(*net.DNSError)):
		return poller.Network, "host name not found"
	case errors.As(err, new(*tls.CertificateVerificationError)):
		return poller.Network, "certificate not trusted"
	case errors.As(err, new(tls.RecordHeaderError)):
		return poller.Network, "no TLS on the other side"
	case errors.Is(err, syscall.ECONNREFUSED):
		return poller.Network, "connection refused"
	case errors.Is(err, syscall.ECONNRESET), errors.Is(err, syscall.EPIPE):
		return poller.Network, "connection reset"
	case stage == stageBody && errors.Is(err, io.ErrUnexpectedEOF):
		return poller.Network, "body cut off"
	case stage == stageConnect:
		return poller.Network, "no connection"
	}
	return poller.Network, "connection lost"
}
