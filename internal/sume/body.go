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
	// smallBody is the size of the usual buffer. Answers are a few hundred bytes.
	smallBody = 16 << 10
	// largeBodies is how many larger buffers exist. It bounds the memory of any
	// number of answers in flight. A read that needs one waits within its timeout.
	largeBodies = 8
)

var errTooLarge = errors.New("the body is too large")

// bodies holds the buffers that answers are read into.
type bodies struct {
	small sync.Pool
	large chan *buffer // free ones; their memory is allocated at the first use
}

// buffer holds one body until it is released.
type buffer struct {
	data    []byte
	release func()
}

func newBodies() *bodies {
	b := &bodies{large: make(chan *buffer, largeBodies)}
	b.small.New = func() any {
		small := &buffer{data: make([]byte, 0, smallBody)}
		small.release = func() { b.small.Put(small) }
		return small
	}
	for range largeBodies {
		large := &buffer{}
		large.release = func() { b.large <- large }
		b.large <- large
	}
	return b
}

// read reads r to its end, at most maxBody bytes of it.
func (b *bodies) read(ctx context.Context, r io.Reader) (*buffer, error) {
	small := b.small.Get().(*buffer)
	small.data = small.data[:0]
	complete, err := small.fill(r)
	if complete {
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
	large.data = append(large.data[:0], small.data...)
	complete, err = large.fill(r)
	if complete && len(large.data) <= maxBody {
		return large, nil
	}
	large.release()
	if err == nil {
		err = errTooLarge
	}
	return nil, err
}

// fill reads until the buffer is full or r ends, and reports whether r ended.
func (b *buffer) fill(r io.Reader) (complete bool, err error) {
	for len(b.data) < cap(b.data) {
		n, err := r.Read(b.data[len(b.data):cap(b.data)])
		b.data = b.data[:len(b.data)+n]
		if err != nil {
			if errors.Is(err, io.EOF) {
				return true, nil
			}
			return false, err
		}
	}
	return false, nil
}
