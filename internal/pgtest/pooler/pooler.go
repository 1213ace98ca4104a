// Package pooler puts PgBouncer, in transaction mode, between a test and its
// database. Test only; PgBouncer has to be installed.
package pooler

import (
	"bytes"
	"fmt"
	"net"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"sumepoller/internal/devstack/process"
)

const (
	startAttempts = 3 // another program may take the port first
	startLimit    = 10 * time.Second
	stopGrace     = 3 * time.Second
	dialEvery     = 5 * time.Millisecond
)

// settings of a pooler that shares size server connections among all clients,
// a transaction at a time. Version 1.24 and later would follow prepared
// statements by name; this one is to be as the older ones.
const settings = `[databases]
* = %s pool_size=%d
[pgbouncer]
listen_addr = 127.0.0.1
listen_port = %d
unix_socket_dir =
auth_type = any
pool_mode = transaction
max_client_conn = 200
%s`

// Start runs a pooler in front of the database of databaseURL and returns the
// URL through it. It ends at the test's cleanup.
func Start(t testing.TB, databaseURL string, size int) string {
	t.Helper()
	binary, err := find()
	if err != nil {
		t.Fatal(err)
	}
	for attempt := 1; ; attempt++ {
		pooled, err := start(t, binary, databaseURL, size)
		if err == nil {
			return pooled
		}
		if attempt == startAttempts {
			t.Fatalf("start PgBouncer: %v", err)
		}
	}
}

// find looks where Debian puts it too, which is in no user's PATH.
func find() (string, error) {
	for _, name := range []string{"pgbouncer", "/usr/sbin/pgbouncer", "/usr/local/sbin/pgbouncer"} {
		if path, err := exec.LookPath(name); err == nil {
			return path, nil
		}
	}
	return "", fmt.Errorf("no pgbouncer: install it (apt-get install pgbouncer, brew install pgbouncer)")
}

func start(t testing.TB, binary, databaseURL string, size int) (string, error) {
	port, err := freePort()
	if err != nil {
		return "", err
	}
	text, err := configuration(binary, databaseURL, size, port)
	if err != nil {
		return "", err
	}
	file := filepath.Join(t.TempDir(), "pgbouncer.ini")
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		return "", err
	}
	var log bytes.Buffer
	cmd := exec.Command(binary, "--quiet", file)
	cmd.Stdout, cmd.Stderr = &log, &log
	p, err := process.Start(cmd, syscall.SIGKILL)
	if err != nil {
		return "", err
	}
	address := net.JoinHostPort("127.0.0.1", strconv.Itoa(port))
	if err := listens(p, address); err != nil {
		p.Stop(syscall.SIGKILL, stopGrace)
		return "", fmt.Errorf("%w\n%s", err, &log)
	}
	t.Cleanup(func() { p.Stop(syscall.SIGTERM, stopGrace) })
	u, err := url.Parse(databaseURL)
	if err != nil {
		return "", err
	}
	u.Host = address
	return u.String(), nil
}

// configuration is the pooler's file: it logs in to the server as the URL's
// user and lets everybody in.
func configuration(binary, databaseURL string, size, port int) (string, error) {
	at, err := pgx.ParseConfig(databaseURL)
	if err != nil {
		return "", err
	}
	server := fmt.Sprintf("host=%s port=%d user=%s", at.Host, at.Port, quoted(at.User))
	if at.Password != "" {
		server += " password=" + quoted(at.Password)
	}
	var more string
	if os.Geteuid() == 0 { // as which it does not run
		more += "user = nobody\n"
	}
	version, err := exec.Command(binary, "--version").Output()
	if err != nil {
		return "", err
	}
	var major, minor int
	if _, err := fmt.Sscanf(string(version), "PgBouncer %d.%d", &major, &minor); err != nil {
		return "", fmt.Errorf("version %q: %w", version, err)
	}
	if major > 1 || minor >= 21 { // older ones do not know the setting
		more += "max_prepared_statements = 0\n"
	}
	return fmt.Sprintf(settings, server, size, port, more), nil
}

func quoted(value string) string { return "'" + strings.ReplaceAll(value, "'", "''") + "'" }

func freePort() (int, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return 0, err
	}
	defer l.Close()
	return l.Addr().(*net.TCPAddr).Port, nil
}

// listens waits until the pooler takes connections.
func listens(p *process.Process, address string) error {
	limit, tick := time.After(startLimit), time.NewTicker(dialEvery)
	defer tick.Stop()
	for {
		conn, err := net.Dial("tcp", address)
		if err == nil {
			return conn.Close()
		}
		select {
		case <-p.Done():
			return fmt.Errorf("it ended: %w", p.Err())
		case <-limit:
			return err
		case <-tick.C:
		}
	}
}
