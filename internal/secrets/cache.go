// Package secrets reads secrets from AWS Secrets Manager and caches them for a few
// minutes. A cached value stays in use while a newer one cannot be read. There is
// no background work: an idle sandbox runs nothing.
//
// Errors name the secret by its id and say what to check; none holds a value.
package secrets

import (
	"context"
	"sync"
	"sync/atomic"
	"time"
)

// Times of the cache.
const (
	life     = 5 * time.Minute  // of a value before it is read again
	patience = 4 * time.Second  // for one fetch, retries included
	pause    = 30 * time.Second // after a fetch that brought nothing new, while a value is kept
)

// Fetcher reads the current value of a secret.
type Fetcher interface {
	// Fetch returns the value of the secret; an error is an *Error.
	Fetch(ctx context.Context, id string) (string, error)
}

// Cache caches secrets. Its methods are safe for concurrent use. Callers that want
// the same secret share one fetch.
type Cache struct {
	fetcher Fetcher
	mu      sync.Mutex
	entries map[string]*entry
}

// entry is one secret. Only the holder of turn may fetch it and use the rest.
type entry struct {
	turn    chan struct{}
	fetches atomic.Int64 // finished ones, successful or not

	value    string
	known    bool
	read     time.Time // when value was read
	err      error     // of the last fetch
	failed   time.Time // when that was
	renewed  time.Time // last renewal that brought no other value; zero after Rearm
	renewErr error     // of that renewal
}

// NewCache returns an empty cache over f.
func NewCache(f Fetcher) *Cache {
	return &Cache{fetcher: f, entries: map[string]*entry{}}
}

// Get returns the secret, at most five minutes old, or older if a newer one cannot
// be read. An error is an *Error, or ctx's.
func (c *Cache) Get(ctx context.Context, id string) (string, error) {
	e := c.entry(id)
	seen := e.fetches.Load()
	if err := e.take(ctx, id); err != nil {
		return "", err
	}
	defer e.give()
	fresh := e.known && time.Since(e.read) < life
	paused := e.known && e.err != nil && time.Since(e.failed) < pause
	if fresh || paused {
		return e.value, nil
	}
	if e.err != nil && e.fetches.Load() > seen {
		return "", e.err // of the fetch that this call waited for
	}
	if err := c.fetch(ctx, id, e); err != nil && !e.known {
		return "", err
	}
	return e.value, nil
}

// Renew returns the secret after its value was rejected somewhere. If the cached
// value is another one, it returns that. Otherwise it reads the secret again. If
// that brings the rejected value or an error, it does not read it once more until
// Rearm is called or half a minute has passed.
func (c *Cache) Renew(ctx context.Context, id, rejected string) (string, error) {
	return c.renew(ctx, id, func(value string) bool { return value == rejected })
}

func (c *Cache) renew(ctx context.Context, id string, rejected func(value string) bool) (string, error) {
	e := c.entry(id)
	if err := e.take(ctx, id); err != nil {
		return "", err
	}
	defer e.give()
	if e.known && !rejected(e.value) {
		return e.value, nil
	}
	if !e.renewed.IsZero() && time.Since(e.renewed) < pause {
		return e.value, e.renewErr
	}
	err := c.fetch(ctx, id, e)
	if ctx.Err() == nil && (err != nil || rejected(e.value)) {
		e.renewed, e.renewErr = time.Now(), err
	}
	return e.value, err
}

// Rearm allows the next Renew of each secret to read it again. It is called at the
// start of an invocation, so that it sees a rotation that the previous one missed.
func (c *Cache) Rearm() {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, e := range c.entries {
		select {
		case e.turn <- struct{}{}:
			e.renewed = time.Time{}
			e.give()
		default: // being fetched
		}
	}
}

func (c *Cache) entry(id string) *entry {
	c.mu.Lock()
	defer c.mu.Unlock()
	e, ok := c.entries[id]
	if !ok {
		e = &entry{turn: make(chan struct{}, 1)}
		c.entries[id] = e
	}
	return e
}

// fetch reads the secret. The caller holds e's turn. A fetch that ended with ctx
// does not count as an error of the secret.
func (c *Cache) fetch(ctx context.Context, id string, e *entry) error {
	bounded, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	value, err := c.fetcher.Fetch(bounded, id)
	if err != nil && ctx.Err() != nil {
		return err
	}
	e.fetches.Add(1)
	if e.err = err; err != nil {
		e.failed = time.Now()
		return err
	}
	e.value, e.known, e.read, e.renewed = value, true, time.Now(), time.Time{}
	return nil
}

func (e *entry) take(ctx context.Context, id string) error {
	select {
	case e.turn <- struct{}{}:
		return nil
	case <-ctx.Done():
		return &Error{ID: id, Reason: "the wait for it was cut short", err: ctx.Err()}
	}
}

func (e *entry) give() { <-e.turn }
