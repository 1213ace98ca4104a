package stack

import (
	"fmt"
	"io"
	"sync"
	"time"
)

const (
	lookEvery = 250 * time.Millisecond
	tellEvery = 2 * time.Second // where lines cannot be written over
)

// screen writes lines, the last of which may be written over on a terminal.
type screen struct {
	mu       sync.Mutex
	out      io.Writer
	terminal bool
	live     bool // a live line stands without its end
	told     time.Time
}

// say writes a line that stays.
func (s *screen) say(format string, args ...any) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.end()
	fmt.Fprintf(s.out, format+"\n", args...)
}

// show writes the live line anew; where lines cannot be written over, one line
// every few seconds.
func (s *screen) show(line string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.terminal {
		fmt.Fprintf(s.out, "\r\x1b[K%s", line)
		s.live = true
		return
	}
	if time.Since(s.told) >= tellEvery {
		fmt.Fprintln(s.out, line)
		s.told = time.Now()
	}
}

// end gives the live line its end.
func (s *screen) end() {
	if s.live {
		fmt.Fprintln(s.out)
		s.live = false
	}
}

// settle shows a line for good.
func (s *screen) settle(line string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.terminal {
		fmt.Fprintf(s.out, "\r\x1b[K")
		s.live = false
	}
	fmt.Fprintln(s.out, line)
}
