package main

import (
	"io"
	"net"
	"net/url"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgproto3"
)

// sleeper is a proxy that keeps the clients of a database waiting, as a database
// does that resumes from a pause.
type sleeper struct {
	listener net.Listener
	server   string
	accepted atomic.Int64
	// greet handles the nth connection, from 1, and reports whether it is passed
	// on to the server.
	greet func(n int64, conn net.Conn) bool
}

func newSleeper(t *testing.T, listener net.Listener, server string, greet func(int64, net.Conn) bool) {
	t.Helper()
	s := &sleeper{listener: listener, server: server, greet: greet}
	var all sync.WaitGroup
	all.Go(func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			go s.serve(conn)
		}
	})
	t.Cleanup(func() { _ = listener.Close(); all.Wait() })
}

func (s *sleeper) serve(conn net.Conn) {
	defer func() { _ = conn.Close() }()
	if !s.greet(s.accepted.Add(1), conn) {
		return
	}
	server, err := net.Dial("tcp", s.server)
	if err != nil {
		return
	}
	defer func() { _ = server.Close() }()
	go func() { _, _ = io.Copy(server, conn); _ = server.Close() }()
	_, _ = io.Copy(conn, server)
}

// notYet answers a login as a server does that is starting.
func notYet(conn net.Conn) {
	backend := pgproto3.NewBackend(conn, conn)
	for {
		message, err := backend.ReceiveStartupMessage()
		if err != nil {
			return
		}
		switch message.(type) {
		case *pgproto3.SSLRequest, *pgproto3.GSSEncRequest:
			if _, err := conn.Write([]byte("N")); err != nil {
				return
			}
			continue
		}
		backend.Send(&pgproto3.ErrorResponse{Severity: "FATAL", Code: "57P03", Message: "the database system is starting up"})
		_ = backend.Flush()
		return
	}
}

// A database that pauses when idle takes 15 s and more for its first connection,
// which must not fail a deploy.
func TestConnect_WakingUp(t *testing.T) {
	t.Parallel()
	const asleep = 15 * time.Second
	for name, greet := range map[string]func(begun time.Time) func(int64, net.Conn) bool{
		"the first connections are answered late": func(time.Time) func(int64, net.Conn) bool {
			return func(n int64, _ net.Conn) bool {
				if n <= 3 {
					time.Sleep(asleep)
				}
				return true
			}
		},
		"the first connection is silent for ever": func(time.Time) func(int64, net.Conn) bool {
			return func(n int64, conn net.Conn) bool {
				if n == 1 {
					_, _ = io.Copy(io.Discard, conn)
				}
				return n > 1
			}
		},
		"connections are closed": func(begun time.Time) func(int64, net.Conn) bool {
			return func(int64, net.Conn) bool { return time.Since(begun) > asleep }
		},
		"it says that it starts": func(begun time.Time) func(int64, net.Conn) bool {
			return func(_ int64, conn net.Conn) bool {
				if time.Since(begun) > asleep {
					return true
				}
				notYet(conn)
				return false
			}
		},
		"nobody listens": nil,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newStack(t)
			u, err := url.Parse(s.adminLogin)
			if err != nil {
				t.Fatal(err)
			}
			listener, err := net.Listen("tcp", "127.0.0.1:0")
			if err != nil {
				t.Fatal(err)
			}
			server, address := u.Host, listener.Addr().String()
			if greet != nil {
				newSleeper(t, listener, server, greet(time.Now()))
			} else {
				_ = listener.Close()
				timer := time.AfterFunc(asleep, func() {
					again, err := net.Listen("tcp", address)
					if err != nil {
						t.Error(err)
						return
					}
					newSleeper(t, again, server, func(int64, net.Conn) bool { return true })
				})
				t.Cleanup(func() { timer.Stop() })
			}
			u.Host = address
			s.h.cfg.Database.URL = u.String()
			s.h.cfg.Roles.Poller, s.h.cfg.Roles.Submit, s.h.cfg.Roles.RoleAuth = "", "", ""
			s.h.cfg.Roles.PollerSecretID, s.h.cfg.Roles.SubmitSecretID = "", ""
			s.within = 5 * time.Minute
			s.mustInvoke(migrated)
		})
	}
}
