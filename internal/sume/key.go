package sume

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
)

var errNoKey = errors.New("the API key does not fit a header")

// keyHeader is the header of a read, made once per key and never changed.
type keyHeader struct {
	key    string
	header http.Header
}

// header returns what every request with this key carries. It is shared: who
// adds to it clones it.
func (c *Client) header(key string) (http.Header, error) {
	if have := c.headers.Load(); have != nil && have.key == key {
		return have.header, nil
	}
	foreign := func(r rune) bool { return r <= ' ' || r > '~' }
	if key == "" || strings.ContainsFunc(key, foreign) {
		return nil, errNoKey
	}
	name, prefix, _ := strings.Cut(c.keyHeader, ": ")
	h := http.Header{
		"Accept":                      {"application/json"},
		"Cache-Control":               {"no-cache"}, // a cache in between would keep a job unfinished
		"User-Agent":                  {"sumepoller"},
		http.CanonicalHeaderKey(name): {prefix + key},
	}
	c.headers.Store(&keyHeader{key: key, header: h})
	return h, nil
}

// withKey makes a request with the key, and once more with a newer one where
// the answer is 401 and there is one. try tells whether it was refused. An
// error means that no request followed for want of a usable key.
func (c *Client) withKey(ctx context.Context, try func(key string, h http.Header) (refused bool)) error {
	key, err := c.keys.Key(ctx)
	if err != nil {
		return fmt.Errorf("sume key: %w", err)
	}
	for renewed := false; ; renewed = true {
		h, err := c.header(key)
		if err != nil {
			return err
		}
		if !try(key, h) || renewed {
			return nil
		}
		newer, err := c.keys.Renew(ctx, key)
		switch {
		case err != nil:
			return fmt.Errorf("sume key: %w", err)
		case newer == key:
			return nil // the refusal stands
		}
		key = newer
	}
}
