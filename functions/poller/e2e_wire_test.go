package main_test

import (
	"bufio"
	"encoding/binary"
	"io"
	"net"
	"strings"
	"sync"
	"testing"
)

// wire stands between a sandbox and PostgreSQL and reads the protocol: it
// counts statements and can lose the answers to some. It speaks no TLS, so that
// it misses none.
type wire struct {
	address, server string
	all             sync.WaitGroup

	mu     sync.Mutex
	texts  []string // of the statements, as they came
	conns  map[net.Conn]bool
	match  string // answers to statements that contain this …
	losses int    // … are lost so often
	lost   int
}

// newWire starts a wire to the server at an address.
func newWire(t *testing.T, server string) *wire {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	w := &wire{address: l.Addr().String(), server: server, conns: map[net.Conn]bool{}}
	w.all.Go(func() {
		for {
			client, err := l.Accept()
			if err != nil {
				return
			}
			w.all.Go(func() { w.serve(client) })
		}
	})
	t.Cleanup(func() {
		_ = l.Close()
		w.mu.Lock()
		for conn := range w.conns {
			_ = conn.Close()
		}
		w.mu.Unlock()
		w.all.Wait()
	})
	return w
}

// lose has the answers to the next n statements that contain a text lost, each
// with its connection, after the server has carried them out.
func (w *wire) lose(text string, n int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.match, w.losses = text, n
}

// statements is how many the server was asked to carry out, preparations
// included.
func (w *wire) statements() int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return len(w.texts)
}

// last returns the latest statements.
func (w *wire) last(n int) []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return append([]string(nil), w.texts[len(w.texts)-n:]...)
}

// open is how many connections are open.
func (w *wire) open() int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return len(w.conns)
}

// losts is how many answers were lost.
func (w *wire) losts() int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.lost
}

func (w *wire) serve(client net.Conn) {
	server, err := net.Dial("tcp", w.server)
	if err != nil {
		_ = client.Close()
		return
	}
	w.mu.Lock()
	w.conns[client] = true
	w.mu.Unlock()
	losing := make(chan struct{}, 1)
	var back sync.WaitGroup
	back.Go(func() {
		w.answers(client, server, losing)
		_, _ = client.Close(), server.Close()
	})
	w.requests(client, server, losing)
	_, _ = client.Close(), server.Close()
	back.Wait()
	w.mu.Lock()
	delete(w.conns, client)
	w.mu.Unlock()
}

// requests passes on what the client sends and notes its statements.
func (w *wire) requests(client, server net.Conn, losing chan<- struct{}) {
	from := bufio.NewReader(client)
	prepared, portal := map[string]string{}, ""
	for started := false; ; {
		kind, body, err := message(from, started)
		if err != nil {
			return
		}
		if !started {
			if code := binary.BigEndian.Uint32(body); code == 80877103 || code == 80877104 { // TLS or GSS wanted
				_, err = client.Write([]byte("N"))
				if err != nil {
					return
				}
				continue
			}
			started = true
		}
		switch kind {
		case 'Q':
			w.note(cstring(body), losing)
		case 'P':
			name := cstring(body)
			prepared[name] = cstring(body[len(name)+1:])
			w.note("PREPARE "+prepared[name], nil)
		case 'B':
			name := cstring(body)
			portal = prepared[cstring(body[len(name)+1:])]
		case 'E':
			w.note(portal, losing)
		}
		if _, err := server.Write(frame(kind, body)); err != nil {
			return
		}
	}
}

// note counts a statement, and tells where its answer is to be lost.
func (w *wire) note(text string, losing chan<- struct{}) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.texts = append(w.texts, text)
	if losing == nil || w.losses == 0 || !strings.Contains(text, w.match) {
		return
	}
	select {
	case losing <- struct{}{}:
		w.losses--
	default: // one of the same exchange is lost already
	}
}

// answers passes on what the server sends. Where the answer is to be lost, it
// waits until the server is through with the exchange, and ends.
func (w *wire) answers(client, server net.Conn, losing <-chan struct{}) {
	from, lose := bufio.NewReader(server), false
	for {
		kind, body, err := message(from, true)
		if err != nil {
			return
		}
		select {
		case <-losing:
			lose = true
		default:
		}
		switch {
		case !lose:
			if _, err := client.Write(frame(kind, body)); err != nil {
				return
			}
		case kind == 'Z':
			w.mu.Lock()
			w.lost++
			w.mu.Unlock()
			return
		}
	}
}

// message reads one: of a kind where typed, or one of those that begin a
// session.
func message(from *bufio.Reader, typed bool) (kind byte, body []byte, err error) {
	if typed {
		if kind, err = from.ReadByte(); err != nil {
			return 0, nil, err
		}
	}
	var size [4]byte
	if _, err := io.ReadFull(from, size[:]); err != nil {
		return 0, nil, err
	}
	body = make([]byte, max(4, binary.BigEndian.Uint32(size[:]))-4)
	_, err = io.ReadFull(from, body)
	return kind, body, err
}

func frame(kind byte, body []byte) []byte {
	out := make([]byte, 0, len(body)+5)
	if kind != 0 {
		out = append(out, kind)
	}
	return append(binary.BigEndian.AppendUint32(out, uint32(len(body)+4)), body...)
}

func cstring(b []byte) string {
	text, _, _ := strings.Cut(string(b), "\x00")
	return text
}
