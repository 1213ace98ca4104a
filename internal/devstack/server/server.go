// Package server starts PostgreSQL servers for development: from the binaries
// that npm installs, on a free port of the loopback interface. The data is
// removed when the server stops. A server ends with its parent.
//
// PostgreSQL does not run as root; then it runs as nobody, from a copy of the
// binaries if that user may not read the repository.
package server

import (
	"bytes"
	"context"
	"crypto/rand"
	"fmt"
	"net"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"syscall"
	"time"

	"sumepoller/internal/devstack/process"
)

const (
	superuser     = "postgres"
	startAttempts = 3 // another program can take the port first
	startLimit    = 30 * time.Second
	stopGrace     = 10 * time.Second
	lookEvery     = 10 * time.Millisecond
	longestSocket = 103  // bytes of a socket's path; macOS takes no more
	logTail       = 2000 // bytes of the server's log in an error
)

// Options are a server's differences from the usual one.
type Options struct {
	Settings []string // name=value; they override the usual ones
}

// Server is a running PostgreSQL.
type Server struct {
	dir      string // data, socket, log, and a copy of the binaries if needed
	install  install
	user     *account
	port     int
	password string
	process  *process.Process
	unlock   func() // of the lock that marks dir as in use
}

// Start makes a database cluster and starts its server. It returns when the
// server accepts connections. The caller must call Stop.
func Start(ctx context.Context, o Options) (*Server, error) {
	s, err := create(ctx)
	if err != nil {
		return nil, fmt.Errorf("start PostgreSQL: %w", err)
	}
	for attempt := 1; ; attempt++ {
		err = s.launch(ctx, o)
		if err == nil {
			return s, nil
		}
		if attempt == startAttempts || ctx.Err() != nil {
			s.Stop()
			return nil, fmt.Errorf("start PostgreSQL: %w", err)
		}
	}
}

// URL is the connection string of the superuser postgres. It contains the
// server's random password.
func (s *Server) URL() string {
	u := url.URL{
		Scheme: "postgres", User: url.UserPassword(superuser, s.password),
		Host: net.JoinHostPort("127.0.0.1", strconv.Itoa(s.port)), Path: "/postgres",
	}
	return u.String()
}

// Bin is the directory of the server's binaries.
func (s *Server) Bin() string { return filepath.Join(s.install.root, "bin") }

// Stop closes all connections, ends the server and removes its files. It may be
// called again.
func (s *Server) Stop() {
	if s.process != nil {
		s.process.Stop(syscall.SIGINT, stopGrace)
	}
	_ = os.RemoveAll(s.dir)
	s.unlock()
}

// create makes the directory and the cluster.
func create(ctx context.Context) (_ *Server, err error) {
	s := &Server{password: rand.Text()}
	if s.user, err = serverAccount(); err != nil {
		return nil, err
	}
	if s.install, err = find(); err != nil {
		return nil, err
	}
	temp := s.user.tempDir()
	sweep(temp)
	if s.dir, err = os.MkdirTemp(temp, dirPrefix); err != nil {
		return nil, err
	}
	s.unlock = func() {}
	defer func() {
		if err != nil {
			s.Stop()
		}
	}()
	if err := s.lock(); err != nil {
		return nil, err
	}
	if err := s.user.own(s.dir); err != nil {
		return nil, err
	}
	if !s.user.mayRead(s.install.root) {
		copied := filepath.Join(s.dir, "install")
		if err := s.install.copyTo(ctx, copied); err != nil {
			return nil, err
		}
		s.install.root = copied
	}
	return s, s.initialize(ctx)
}

// initialize runs initdb.
func (s *Server) initialize(ctx context.Context) error {
	secret := filepath.Join(s.dir, "password")
	if err := s.user.writeFile(secret, []byte(s.password+"\n")); err != nil {
		return err
	}
	defer os.Remove(secret)
	cmd := exec.Command(filepath.Join(s.Bin(), "initdb"), "--pgdata", s.data(),
		"--username", superuser, "--pwfile", secret, "--auth", "scram-sha-256",
		"--encoding", "UTF8", "--locale", "C", "--no-sync")
	s.prepare(cmd)
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	if err := process.Run(ctx, cmd, 0); err != nil {
		return fmt.Errorf("initdb: %w\n%s", err, tail(out.Bytes()))
	}
	return nil
}

// launch starts the server on a free port and waits until it is ready.
func (s *Server) launch(ctx context.Context, o Options) error {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	s.port = l.Addr().(*net.TCPAddr).Port
	l.Close()
	args := []string{"-D", s.data(), "-p", strconv.Itoa(s.port), "-k", s.socketDir()}
	for _, setting := range append(usualSettings(), o.Settings...) {
		args = append(args, "-c", setting)
	}
	cmd := exec.Command(filepath.Join(s.Bin(), "postgres"), args...)
	s.prepare(cmd)
	log, err := os.Create(filepath.Join(s.dir, "log"))
	if err != nil {
		return err
	}
	defer log.Close()
	cmd.Stdout, cmd.Stderr = log, log
	if s.process, err = process.Start(cmd, syscall.SIGQUIT); err != nil {
		return err
	}
	if err := s.await(ctx); err != nil {
		s.process.Stop(syscall.SIGQUIT, stopGrace)
		text, _ := os.ReadFile(log.Name())
		return fmt.Errorf("%w\n%s", err, tail(text))
	}
	return nil
}

// usualSettings are for many short-lived databases that may be lost. They do
// not change the content of the write-ahead log.
func usualSettings() []string {
	return []string{
		"listen_addresses=127.0.0.1", "max_connections=400", "shared_buffers=128MB",
		"fsync=off", "max_wal_size=4GB", "checkpoint_timeout=1h",
		"timezone=UTC", "log_timezone=UTC", "lc_messages=C",
	}
}

// await waits for "ready" in the server's lock file: it does not depend on who
// may connect, and it cannot be the answer of another server.
func (s *Server) await(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, startLimit)
	defer cancel()
	for {
		lock, _ := os.ReadFile(filepath.Join(s.data(), "postmaster.pid"))
		if bytes.Contains(lock, []byte("\nready")) {
			return nil
		}
		select {
		case <-s.process.Done():
			return fmt.Errorf("the server ended: %w", s.process.Err())
		case <-ctx.Done():
			return fmt.Errorf("the server is not ready: %w", ctx.Err())
		case <-time.After(lookEvery):
		}
	}
}

// socketDir is empty (no Unix socket) where the path would be too long.
func (s *Server) socketDir() string {
	if len(s.dir)+len("/.s.PGSQL.65535") > longestSocket {
		return ""
	}
	return s.dir
}

func (s *Server) data() string { return filepath.Join(s.dir, "data") }

// prepare makes cmd run as the server's user, without the variables of this
// process that change what PostgreSQL does.
func (s *Server) prepare(cmd *exec.Cmd) {
	cmd.Dir = s.dir
	cmd.Env = []string{"PATH=" + os.Getenv("PATH"), "LC_ALL=C", "TZ=UTC"}
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: s.user.credential}
}

func tail(text []byte) []byte { return bytes.TrimSpace(text[max(0, len(text)-logTail):]) }
