// Package secrets reads secrets from AWS Secrets Manager and keeps them in
// memory for a few minutes. A value that is kept goes on serving while a newer
// one cannot be had. Everything happens within a caller's call: an idle sandbox
// has nothing running.
//
// Errors name the secret by its id and say what to look at; none holds a value.
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
	// Fetch returns the text of the secret; an error is an *Error.
	Fetch(ctx context.Context, id string) (string, error)
}

// Cache keeps secrets. Its methods may be called at the same time; callers that
// want the same secret share one fetch.
type Cache struct {
	fetcher Fetcher
	mu      sync.Mutex
	entries map[string]*entry
}

// entry is one secret. Who holds turn may fetch and change the rest.
type entry struct {
	turn    chan struct{}
	fetches atomic.Int64 // finished ones, good or bad

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

// Get returns the secret, at most five minutes old, or older where a newer one
// cannot be had. An error is an *Error, or ctx's.
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

// Renew returns the secret after its value was refused somewhere. A kept value
// that differs from the rejected one is the answer; else the secret is read
// anew, once, and until Rearm (or half a minute) no further time where that
// brought the rejected value again or nothing.
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

// Rearm lets the next renewal of each secret read it anew: for the start of an
// invocation, so that a rotation one run came too early for is seen by the next.
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

// fetch reads the secret; e's turn is held. A fetch that the caller's own end
// cut short is not held against the secret.
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
