package cli

import (
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"mime"
	"net"
	"net/http"
	"net/http/httptrace"
	"net/url"
	"strconv"
	"strings"
	"syscall"
	"time"
)

const (
	emulatorPath = "/2015-03-31/functions/function/invocations"
	addressForm  = "want an address such as http://127.0.0.1:9001; KEEP=1 make run prints two"
	dialLimit    = 10 * time.Second
)

// post sends the payload to a function's address, once, and returns the answer.
// An answer with another status than 2xx is an error, unless it describes a
// failed invocation. No error quotes the address beyond its host, nor the body
// of an answer.
func post(ctx context.Context, address string, payload []byte) ([]byte, error) {
	u, err := parseAddress(address)
	if err != nil {
		return nil, notSent{err}
	}
	connected := false
	ctx = httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{
		GotConn: func(httptrace.GotConnInfo) { connected = true },
	})
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, u.String(), bytes.NewReader(payload))
	if err != nil {
		return nil, notSent{errors.New("FUNCTION_URL is not a URL; " + addressForm)}
	}
	req.Header.Set("Content-Type", "application/json")
	if password, ok := u.User.Password(); ok {
		req.SetBasicAuth(u.User.Username(), password)
	}
	proxy, err := http.ProxyFromEnvironment(req) // nil for this machine's own addresses
	if err != nil {
		return nil, notSent{err}
	}
	transport := &http.Transport{
		Proxy: http.ProxyURL(proxy), DisableKeepAlives: true,
		DialContext: (&net.Dialer{Timeout: dialLimit}).DialContext,
	}
	resp, err := transport.RoundTrip(req) // follows no redirect, which would make a GET of the POST
	if err != nil {
		if err = explain(err, u, proxy); !connected {
			err = notSent{err}
		}
		return nil, err
	}
	defer resp.Body.Close()
	answer, err := io.ReadAll(io.LimitReader(resp.Body, maxPayload+1))
	switch {
	case err != nil:
		return nil, explain(err, u, proxy)
	case len(answer) > maxPayload:
		return nil, fmt.Errorf("FUNCTION_URL answers with over %d bytes, more than a function can: is the address a function's?", maxPayload)
	case parseFailedInvocation(answer) == nil && resp.StatusCode/100 != 2:
		return nil, unexpectedStatus(resp, proxy)
	}
	return answer, nil
}

// parseAddress returns the URL to post to: where the address has no path, the
// path of the emulator's invocations is added. Its errors do not quote the
// address.
func parseAddress(address string) (*url.URL, error) {
	address = strings.TrimSpace(address)
	if lower := strings.ToLower(address); !strings.HasPrefix(lower, "http://") && !strings.HasPrefix(lower, "https://") {
		return nil, errors.New("FUNCTION_URL does not begin with http:// or https://; " + addressForm)
	}
	u, err := url.Parse(address)
	if err != nil || u.Hostname() == "" {
		return nil, errors.New("FUNCTION_URL has no valid host and port; " + addressForm)
	}
	if port := u.Port(); port != "" {
		if n, err := strconv.ParseUint(port, 10, 16); err != nil || n == 0 {
			return nil, errors.New("FUNCTION_URL has no valid port; " + addressForm)
		}
	}
	if strings.Trim(u.Path, "/") == "" {
		u.Path = emulatorPath
	}
	return u, nil
}

// explain says what went wrong between the request and the end of its answer,
// and what to do.
func explain(err error, u, proxy *url.URL) error {
	var (
		unresolved  *net.DNSError
		certificate *tls.CertificateVerificationError
		notTLS      tls.RecordHeaderError
		operation   *net.OpError
		timeout     net.Error
	)
	switch {
	case errors.Is(err, context.Canceled):
		return errors.New("interrupted")
	case proxy != nil:
		return fmt.Errorf("%s is asked through the proxy %s, which failed: unset HTTP_PROXY and HTTPS_PROXY, or add %s to NO_PROXY", u.Host, proxy.Host, u.Hostname())
	case errors.As(err, &unresolved):
		return fmt.Errorf("the host of FUNCTION_URL, %s, does not resolve: check its spelling", u.Hostname())
	case errors.Is(err, syscall.ECONNREFUSED):
		return fmt.Errorf("nothing listens at FUNCTION_URL, %s: was the stack stopped? KEEP=1 make run starts one and prints its addresses, new ones each time", u.Host)
	case errors.As(err, &timeout) && timeout.Timeout():
		return fmt.Errorf("FUNCTION_URL, %s, did not answer in time", u.Host)
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF), errors.Is(err, syscall.ECONNRESET), errors.Is(err, syscall.EPIPE):
		return fmt.Errorf("FUNCTION_URL, %s, ended the connection before its answer was complete: was the stack stopped?", u.Host)
	case errors.As(err, &notTLS):
		return fmt.Errorf("FUNCTION_URL begins with https://, but %s does not speak TLS: set http://", u.Host)
	case errors.As(err, &certificate), errors.As(err, &operation):
		return fmt.Errorf("FUNCTION_URL cannot be asked: %w", err)
	}
	return fmt.Errorf("FUNCTION_URL, %s, did not answer as an HTTP server does: is the address a function's?", u.Host) // err may quote the answer
}

// unexpectedStatus describes the answer of something that is not a function.
func unexpectedStatus(resp *http.Response, proxy *url.URL) error {
	from, cure := "FUNCTION_URL", "is the address a function's?"
	if proxy != nil {
		from += " (through the proxy " + proxy.Host + ", see HTTP_PROXY and NO_PROXY)"
	}
	switch status := resp.StatusCode; {
	case status/100 == 3:
		cure = "redirects are not followed; set FUNCTION_URL to the address that this one leads to"
	case status == http.StatusUnauthorized || status == http.StatusForbidden:
		cure = "a deployed function is invoked without FUNCTION_URL, with AWS credentials"
	}
	kind, _, err := mime.ParseMediaType(resp.Header.Get("Content-Type"))
	if err != nil {
		kind = "a body of no known type"
	}
	return fmt.Errorf("%s answers %d %s with %s, not as a function: %s", from, resp.StatusCode, http.StatusText(resp.StatusCode), kind, cure)
}
