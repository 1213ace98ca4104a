package server_test

import (
	"net"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"sumepoller/internal/devstack/environment"
	"sumepoller/internal/devstack/server"
)

func TestMain(m *testing.M) {
	environment.Isolate()
	m.Run()
}

func query(t *testing.T, connString, sql string) string {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), connString)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(t.Context())
	var answer string
	if err := conn.QueryRow(t.Context(), sql).Scan(&answer); err != nil {
		t.Fatal(err)
	}
	return answer
}

func TestStart_TwoServers(t *testing.T) {
	t.Parallel()
	var urls []string
	for range 2 {
		s, err := server.Start(t.Context(), server.Options{Settings: []string{"max_connections=20"}})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(s.Stop)
		urls = append(urls, s.URL())
	}
	if first, second := query(t, urls[0], "SELECT system_identifier::text FROM pg_control_system()"),
		query(t, urls[1], "SELECT system_identifier::text FROM pg_control_system()"); first == second {
		t.Errorf("two servers share the cluster %s", first)
	}
	if got := query(t, urls[0], "SHOW max_connections"); got != "20" {
		t.Errorf("max_connections is %s, want the option's 20", got)
	}
}

func TestStop(t *testing.T) {
	t.Parallel()
	s, err := server.Start(t.Context(), server.Options{})
	if err != nil {
		t.Fatal(err)
	}
	data := query(t, s.URL(), "SHOW data_directory")
	s.Stop()
	s.Stop()
	if _, err := os.Stat(filepath.Dir(data)); !os.IsNotExist(err) {
		t.Errorf("directory %s: got %v, want none", filepath.Dir(data), err)
	}
	u, err := url.Parse(s.URL())
	if err != nil {
		t.Fatal(err)
	}
	if conn, err := net.DialTimeout("tcp", u.Host, time.Second); err == nil {
		conn.Close()
		t.Error("the port still accepts connections")
	}
}

func TestStart_WrongPassword(t *testing.T) {
	t.Parallel()
	s, err := server.Start(t.Context(), server.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Stop)
	u, err := url.Parse(s.URL())
	if err != nil {
		t.Fatal(err)
	}
	u.User = url.UserPassword("postgres", "another")
	if conn, err := pgx.Connect(t.Context(), u.String()); err == nil {
		conn.Close(t.Context())
		t.Error("a wrong password connects")
	}
}

func TestStart_InvalidSetting(t *testing.T) {
	t.Parallel()
	_, err := server.Start(t.Context(), server.Options{Settings: []string{"shared_buffers=much"}})
	if err == nil || !strings.Contains(err.Error(), "shared_buffers") {
		t.Errorf("got %v, want the server's message", err)
	}
}

func TestStart_RemovesAbandonedDirectory(t *testing.T) {
	t.Parallel()
	left, err := os.MkdirTemp("", "sumepoller-postgres-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(left) })
	if err := os.WriteFile(filepath.Join(left, "in-use"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	s, err := server.Start(t.Context(), server.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Stop)
	if _, err := os.Stat(left); !os.IsNotExist(err) {
		t.Errorf("directory %s: got %v, want none", left, err)
	}
	if got := query(t, s.URL(), "SELECT 'alive'"); got != "alive" {
		t.Errorf("got %q from the server", got)
	}
}
