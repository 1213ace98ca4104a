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

// wire is a proxy between a sandbox and PostgreSQL. It reads the protocol, counts
// the statements, and can drop the answers to some. It refuses TLS, so that it
// sees every statement.
type wire struct {
	address, server string
	all             sync.WaitGroup

	mu     sync.Mutex
	sql    []string // the statements, in order
	conns  map[net.Conn]bool
	match  string // drop the answers to statements that contain this
	toDrop int    // how many more
	drops  int    // answers dropped
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

// drop drops the answers to the next n statements that contain a string, and
// their connections, after the server has executed them.
func (w *wire) drop(match string, n int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.match, w.toDrop = match, n
}

// statements returns how many statements were sent, PREPARE included.
func (w *wire) statements() int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return len(w.sql)
}

// last returns the latest statements.
func (w *wire) last(n int) []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return append([]string(nil), w.sql[len(w.sql)-n:]...)
}

// open returns how many connections are open.
func (w *wire) open() int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return len(w.conns)
}

// dropped returns how many answers were dropped.
func (w *wire) dropped() int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.drops
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
	drops := make(chan struct{}, 1)
	var back sync.WaitGroup
	back.Go(func() {
		w.answers(client, server, drops)
		_, _ = client.Close(), server.Close()
	})
	w.requests(client, server, drops)
	_, _ = client.Close(), server.Close()
	back.Wait()
	w.mu.Lock()
	delete(w.conns, client)
	w.mu.Unlock()
}

// requests forwards what the client sends, and records its statements.
func (w *wire) requests(client, server net.Conn, drops chan<- struct{}) {
	from := bufio.NewReader(client)
	prepared, portal := map[string]string{}, ""
	for started := false; ; {
		kind, body, err := message(from, started)
		if err != nil {
			return
		}
		if !started {
			if code := binary.BigEndian.Uint32(body); code == 80877103 || code == 80877104 { // TLS or GSS requested
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
			w.record(cstring(body), drops)
		case 'P':
			name := cstring(body)
			prepared[name] = cstring(body[len(name)+1:])
			w.record("PREPARE "+prepared[name], nil)
		case 'B':
			name := cstring(body)
			portal = prepared[cstring(body[len(name)+1:])]
		case 'E':
			w.record(portal, drops)
		}
		if _, err := server.Write(frame(kind, body)); err != nil {
			return
		}
	}
}

// record records a statement, and reports on drops if its answer is to be
// dropped.
func (w *wire) record(statement string, drops chan<- struct{}) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.sql = append(w.sql, statement)
	if drops == nil || w.toDrop == 0 || !strings.Contains(statement, w.match) {
		return
	}
	select {
	case drops <- struct{}{}:
		w.toDrop--
	default: // another answer of the same exchange is dropped already
	}
}

// answers forwards what the server sends. If an answer is to be dropped, it waits
// for the end of the exchange, and returns.
func (w *wire) answers(client, server net.Conn, drops <-chan struct{}) {
	from, drop := bufio.NewReader(server), false
	for {
		kind, body, err := message(from, true)
		if err != nil {
			return
		}
		select {
		case <-drops:
			drop = true
		default:
		}
		switch {
		case !drop:
			if _, err := client.Write(frame(kind, body)); err != nil {
				return
			}
		case kind == 'Z':
			w.mu.Lock()
			w.drops++
			w.mu.Unlock()
			return
		}
	}
}

// message reads a message. The first messages of a session have no type.
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
	s, _, _ := strings.Cut(string(b), "\x00")
	return s
}
