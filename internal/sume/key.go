package sume

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
)

var errNoKey = errors.New("the API key does not fit a header")

// keyHeader is the header of a read. It is made once for each key.
type keyHeader struct {
	key    string
	header http.Header
}

// header returns the header of every request with this key. It is shared: clone
// it before changing it.
func (c *Client) header(key string) (http.Header, error) {
	if have := c.headers.Load(); have != nil && have.key == key {
		return have.header, nil
	}
	if key == "" || strings.ContainsFunc(key, func(r rune) bool { return r <= ' ' || r > '~' }) {
		return nil, errNoKey
	}
	name, prefix, _ := strings.Cut(c.keyHeader, ": ")
	h := http.Header{
		"Accept":        {"application/json"},
		"Cache-Control": {"no-cache"}, // a cached answer would keep a job unfinished
		"User-Agent":    {"sumepoller"},
	}
	h.Set(name, prefix+key)
	c.headers.Store(&keyHeader{key: key, header: h})
	return h, nil
}

// withKey makes a request with the key. If the key was refused and a newer one
// exists, it makes the request once more with that. It returns an error if
// there was no usable key for a request.
func (c *Client) withKey(ctx context.Context, request func(key string, h http.Header) (refused bool)) error {
	key, err := c.keys.Key(ctx)
	if err != nil {
		return fmt.Errorf("sume key: %w", err)
	}
	for renewed := false; ; renewed = true {
		h, err := c.header(key)
		if err != nil {
			return err
		}
		if !request(key, h) || renewed {
			return nil
		}
		newer, err := c.keys.Renew(ctx, key)
		if err != nil {
			return fmt.Errorf("sume key: %w", err)
		}
		if newer == key {
			return nil
		}
		key = newer
	}
}
