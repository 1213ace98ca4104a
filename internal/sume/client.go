// Package sume is the client of the Sume API: one free read of a job's status,
// and the one paid post that buys a job.
//
// It returns the types of the packages that use it. A read returns a
// poller.Answer if the response is well-formed, and otherwise a
// poller.ReadError with its class. A post returns a submit.Answer or a
// submit.PostError. The key goes to the configured host only: no redirect is
// followed, and every URL is the configured base with an escaped id behind it.
// No error of this package holds a URL, a key or a body.
package sume

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"net"
	"net/http"
	"net/url"
	"strings"
	"sync/atomic"
	"time"
)

// Keys returns the API key. Its methods are safe for concurrent use.
type Keys interface {
	// Key returns the key to send, which may be cached.
	Key(ctx context.Context) (string, error)
	// Renew returns the current key, after the API refused rejected. It fetches
	// the key again, unless another call has replaced rejected already.
	Renew(ctx context.Context, rejected string) (string, error)
}

// Config says how to reach the API.
type Config struct {
	BaseURL   string         // as config checks it; paths are added behind it
	KeyHeader string         // the header line that carries the key, up to the key: "X-Api-Key: "
	Timeout   time.Duration  // of one request of a read, from dial to last byte; above zero
	Roots     *x509.CertPool // authorities that may sign the server's certificate; nil: the system's
}

// Client reads jobs and posts orders. It implements poller.Reader and
// submit.Poster. Its methods are safe for concurrent use.
type Client struct {
	base      *url.URL
	keys      Keys
	keyHeader string
	timeout   time.Duration
	transport *http.Transport
	bodies    *bodies
	headers   atomic.Pointer[keyHeader]
	groups    atomic.Uint64 // the latest group of requests that share a connection
}

// NewClient returns a client that has not opened a connection yet. Its errors
// hold no value of the configuration.
func NewClient(cfg Config, keys Keys) (*Client, error) {
	base, err := url.Parse(cfg.BaseURL)
	header, _, isHeader := strings.Cut(cfg.KeyHeader, ": ")
	switch {
	case err != nil || base.Hostname() == "":
		return nil, errors.New("sume client: the base URL is not absolute")
	case !isHeader || header == "":
		return nil, errors.New("sume client: no header for the key")
	case cfg.Timeout <= 0:
		return nil, errors.New("sume client: the request timeout must be above zero")
	case keys == nil:
		return nil, errors.New("sume client: no source of keys")
	}
	c := &Client{base: base, keys: keys, keyHeader: cfg.KeyHeader, timeout: cfg.Timeout, bodies: newBodies()}
	c.transport = c.newTransport(cfg)
	return c, nil
}

// CloseIdle closes the connections that no request is using. A run calls it at
// its end, so that a frozen sandbox holds none.
func (c *Client) CloseIdle() { c.transport.CloseIdleConnections() }

// maxIdle is how many connections are kept for later reads.
const maxIdle = 256

func (c *Client) newTransport(cfg Config) *http.Transport {
	dialer := &net.Dialer{Timeout: cfg.Timeout, KeepAlive: 15 * time.Second}
	// Find a dead connection early, because every read on it is lost. Then
	// there is time left to send these reads once more.
	silence := min(5*time.Second, cfg.Timeout/3)
	return &http.Transport{
		Proxy: http.ProxyFromEnvironment,
		DialContext: func(ctx context.Context, network, address string) (net.Conn, error) {
			nc, err := dialer.DialContext(ctx, network, address)
			if err != nil {
				return nil, err
			}
			watched := &conn{Conn: nc}
			watched.group.Store(c.groups.Add(1))
			return watched, nil
		},
		TLSClientConfig:        &tls.Config{MinVersion: tls.VersionTLS12, RootCAs: cfg.Roots},
		TLSHandshakeTimeout:    cfg.Timeout,
		ForceAttemptHTTP2:      true,
		MaxIdleConns:           maxIdle,
		MaxIdleConnsPerHost:    maxIdle,
		IdleConnTimeout:        30 * time.Second,
		MaxResponseHeaderBytes: 64 << 10,
		// StrictMaxConcurrentRequests stays off: with Go 1.26 a request that waits
		// counts against the limit that it waits for, so that none is sent. Without
		// it further connections are opened.
		HTTP2: &http.HTTP2Config{SendPingTimeout: silence, PingTimeout: silence, WriteByteTimeout: silence},
	}
}
