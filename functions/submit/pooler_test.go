//go:build pooler

package main_test

import (
	"bytes"
	"fmt"
	"net"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"syscall"
	"testing"
	"time"

	"sumepoller/internal/sume/sumetest"
)

// poolerUser is nobody. PgBouncer runs as this user if the tests run as root,
// which it refuses.
const poolerUser = 65534

// poolerSettings returns a configuration with one server connection in
// transaction mode.
func poolerSettings(server *url.URL, port int) []byte {
	login := "user=" + server.User.Username()
	if password, ok := server.User.Password(); ok {
		login += " password='" + password + "'"
	}
	return fmt.Appendf(nil, `[databases]
* = host=%s port=%s %s
[pgbouncer]
listen_addr = 127.0.0.1
listen_port = %d
unix_socket_dir =
auth_type = any
pool_mode = transaction
default_pool_size = 1
`, server.Hostname(), server.Port(), login, port)
}

// throughPooler connects the fixture to its database through a PgBouncer in
// transaction mode with one server connection.
func (m *fixture) throughPooler(t *testing.T) {
	t.Helper()
	u, err := url.Parse(m.databaseURL)
	if err != nil {
		t.Fatal(err)
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	address := listener.Addr().(*net.TCPAddr)
	listener.Close() // PgBouncer takes the port
	ini := filepath.Join(t.TempDir(), "pgbouncer.ini")
	if err := os.WriteFile(ini, poolerSettings(u, address.Port), 0o644); err != nil {
		t.Fatal(err)
	}
	var log bytes.Buffer
	cmd := exec.Command("pgbouncer", ini)
	cmd.Stdout, cmd.Stderr = &log, &log
	if os.Getuid() == 0 {
		cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: poolerUser, Gid: poolerUser}}
		for dir := filepath.Dir(ini); dir != os.TempDir() && dir != "/"; dir = filepath.Dir(dir) {
			if err := os.Chmod(dir, 0o755); err != nil {
				t.Fatal(err)
			}
		}
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
		if t.Failed() {
			t.Logf("pgbouncer: %s", &log)
		}
	})
	m.await(t, func() bool {
		conn, err := net.DialTimeout("tcp", address.String(), time.Second)
		if err == nil {
			conn.Close()
		}
		return err == nil
	})
	query := u.Query()
	query.Set("default_query_exec_mode", "exec")
	query.Set("sslmode", "disable")
	u.Host, u.RawQuery = address.String(), query.Encode()
	m.databaseURL = u.String()
}

func TestSubmit_Pooler(t *testing.T) {
	t.Parallel()
	m := newFixture(t, sumetest.Options{Latency: 100 * time.Millisecond})
	m.throughPooler(t)
	var wg sync.WaitGroup
	for range 2 {
		f := m.sandbox(t)
		wg.Go(func() {
			for i := range 10 {
				key := fmt.Sprintf("order-%d", i)
				if got, err := f.Invoke(t.Context(), payload(key)); err != nil || got.Failure != nil {
					t.Errorf("%s: %v, %v", key, got.Failure, err)
				}
			}
		})
	}
	wg.Wait()
	for i := range 10 {
		m.wantSettled(t, fmt.Sprintf("order-%d", i))
	}
	if billed := m.api.Stats().Billed; billed != 10 {
		t.Errorf("10 orders, %d jobs billed", billed)
	}
}

func TestSubmit_PoolerTableRefuses(t *testing.T) {
	t.Parallel()
	m := newFixture(t, sumetest.Options{})
	m.throughPooler(t)
	f := m.sandbox(t)
	table := refusedTables["deferred foreign key"]
	m.exec(t, table.refuse)
	wantError(t, f, payload("order-42"), "database: nothing was sent", table.names)
	m.exec(t, table.fix)
	refuse := func() {
		m.exec(t, `ALTER TABLE video_jobs ADD CONSTRAINT of_an_order FOREIGN KEY (job_id) REFERENCES orders (id)`)
	}
	m.onPost.Store(&refuse)
	wantError(t, f, payload("order-42"), "unrecorded: job_bought_1", table.names)
	wantError(t, f, resend("order-42"), "unrecorded: job_bought_1", table.names)
	m.exec(t, table.fix)
	m.wantBought(t, f)
}
