package devstack

import (
	"bytes"
	"sync"
)

// logLimit is how much of a function's output is kept, in bytes.
const logLimit = 8 << 20

// logBuffer keeps the newest part of what is written to it.
type logBuffer struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (b *logBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.text.Len()+len(p) > logLimit {
		b.text.Next(b.text.Len() / 2)
	}
	return b.text.Write(p)
}

func (b *logBuffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.text.String()
}
