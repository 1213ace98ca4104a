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
	class  poller.Class
	reason string
}

func (t *trouble) Error() string { return string(t.class) + " " + t.reason }

// diagnose tells why an exchange under inner, a child of ctx, ended in err.
func (a *attempt) diagnose(ctx, inner context.Context, err error) error {
	stage := a.stage.Load()
	switch cause := context.Cause(inner); {
	case errors.Is(cause, errTimeout):
		return &trouble{poller.Timeout, waiting(stage)}
	case errors.Is(cause, errRepeats):
		return &trouble{poller.Network, "connection lost again"}
	case cause != nil && errors.Is(ctx.Err(), context.DeadlineExceeded):
		return &trouble{poller.Timeout, waiting(stage)}
	case cause != nil && ctx.Err() != nil:
		return fmt.Errorf("sume request: %w", ctx.Err())
	}
	if timeout := net.Error(nil); errors.As(err, &timeout) && timeout.Timeout() {
		return &trouble{poller.Timeout, waiting(stage)}
	}
	return classify(stage, err)
}

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
		return &trouble{poller.Malformed, "too large"}
	case errors.Is(err, gzip.ErrHeader), errors.Is(err, gzip.ErrChecksum), errors.As(err, &corrupt):
		return &trouble{poller.Malformed, "broken compression"}
	case errors.As(err, &dns):
		return &trouble{poller.Network, "host name not found"}
	case errors.As(err, &cert):
		return &trouble{poller.Network, "certificate not trusted"}
	case errors.As(err, &record):
		return &trouble{poller.Network, "no TLS on the other side"}
	case errors.Is(err, syscall.ECONNREFUSED):
		return &trouble{poller.Network, "connection refused"}
	case errors.Is(err, syscall.ECONNRESET), errors.Is(err, syscall.EPIPE):
		return &trouble{poller.Network, "connection reset"}
	case stage == stageBody && errors.Is(err, io.ErrUnexpectedEOF):
		return &trouble{poller.Network, "body cut off"}
	case stage == stageConnect:
		return &trouble{poller.Network, "no connection"}
	}
	return &trouble{poller.Network, "connection lost"}
}
