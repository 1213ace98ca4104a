package sume

import (
	"context"
	"errors"
	"io"
	"sync"
)

const (
	// maxBody is the longest body that is read, after decompression.
	maxBody = 1 << 20
	// smallBody is the size of the buffers that every read has; answers are a
	// few hundred bytes.
	smallBody = 16 << 10
	// largeBodies is how many answers beyond smallBody are in memory at once,
	// so that any number of them in flight stays within a few MiB. The others
	// wait, within their own time.
	largeBodies = 8
)

var errTooLarge = errors.New("the body is too large")

// bodies lends the buffers that answers are read into.
type bodies struct {
	small sync.Pool
	large chan *buffer // free large buffers, made when first used
}

// buffer holds one body until it is released.
type buffer struct {
	data  []byte
	home  *bodies
	large bool
}

func newBodies() *bodies {
	b := &bodies{large: make(chan *buffer, largeBodies)}
	b.small.New = func() any { return &buffer{home: b, data: make([]byte, 0, smallBody)} }
	for range largeBodies {
		b.large <- &buffer{home: b, large: true}
	}
	return b
}

func (b *buffer) release() {
	b.data = b.data[:0]
	if b.large {
		b.home.large <- b
		return
	}
	b.home.small.Put(b)
}

// read reads r to its end, at most maxBody bytes of it.
func (b *bodies) read(ctx context.Context, r io.Reader) (*buffer, error) {
	small := b.small.Get().(*buffer)
	whole, err := small.fill(r)
	if whole {
		return small, nil
	}
	defer small.release()
	if err != nil {
		return nil, err
	}
	var large *buffer
	select {
	case large = <-b.large:
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	if large.data == nil {
		large.data = make([]byte, 0, maxBody+1)
	}
	large.data = append(large.data, small.data...)
	whole, err = large.fill(r)
	if whole && len(large.data) <= maxBody {
		return large, nil
	}
	large.release()
	if err == nil {
		err = errTooLarge
	}
	return nil, err
}

// fill reads until the buffer is full or r ends; whole tells which.
func (b *buffer) fill(r io.Reader) (whole bool, err error) {
	for len(b.data) < cap(b.data) {
		n, err := r.Read(b.data[len(b.data):cap(b.data)])
		b.data = b.data[:len(b.data)+n]
		switch {
		case errors.Is(err, io.EOF):
			return true, nil
		case err != nil:
			return false, err
		}
	}
	return false, nil
}
