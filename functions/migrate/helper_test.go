package main

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"sumepoller/internal/config"
	"sumepoller/internal/devstack/environment"
	"sumepoller/internal/devstack/server"
	"sumepoller/internal/secrets"
	"sumepoller/internal/telemetry"
)

// own is a server for these tests only, since roles belong to a whole server. It
// checks passwords.
var own *server.Server

func TestMain(m *testing.M) { os.Exit(testMain(m)) }

func testMain(m *testing.M) int {
	environment.Isolate()
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	var err error
	if own, err = server.Start(ctx, server.Options{}); err != nil {
		fmt.Fprintln(os.Stderr, "start a PostgreSQL (`make test` installs one):", err)
		return 1
	}
	defer own.Stop()
	return m.Run()
}

// vault is Secrets Manager as a map; its values may be changed between calls.
type vault map[string]string

func (v vault) Fetch(_ context.Context, id string) (string, error) {
	value, ok := v[id]
	if !ok {
		return "", &secrets.Error{ID: id, Reason: "not found"}
	}
	return value, nil
}

// secretOf writes a secret as the stack does.
func secretOf(user, password string) string {
	return fmt.Sprintf(`{"username": %q, "password": %q}`, user, password)
}

// adminPassword has the characters that break a connection string without escaping.
const adminPassword = `a#d%m?i/n:@[ ]`

// stack is one installation: a database whose owner is its administrator and no
// superuser, as on RDS.
type stack struct {
	t                     *testing.T
	h                     *handler
	database, admin       string
	poller, submit        string
	vault                 vault
	superuser, adminLogin string
	within                time.Duration // time of an invocation; 0: no limit
}

var stacks atomic.Int64

// newStack makes a database and its administrator, and configures migrate for it.
// All names are unique, so that nothing needs a cleanup.
func newStack(t *testing.T) *stack {
	t.Helper()
	n := stacks.Add(1)
	s := &stack{
		t: t, database: fmt.Sprintf("jobs_%d", n), admin: fmt.Sprintf("admin_%d", n),
		poller: fmt.Sprintf("st-%d_poller", n), submit: fmt.Sprintf("st-%d_submit", n),
	}
	s.vault = vault{"poller": secretOf(s.poller, "first'pw"), "submit": secretOf(s.submit, "second pw")}
	s.exec(own.URL(), `CREATE ROLE `+s.admin+` LOGIN CREATEROLE PASSWORD '`+adminPassword+`'`, `CREATE DATABASE `+s.database+` OWNER `+s.admin)
	s.superuser = s.url(own.URL(), "", "")
	s.adminLogin = s.url(own.URL(), s.admin, adminPassword)
	sume := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusUnauthorized) }))
	t.Cleanup(sume.Close)
	s.h = &handler{
		cfg: config.Migrate{
			Database: config.Database{URL: s.adminLogin, MaxConns: 4},
			Roles:    config.Roles{Poller: s.poller, Submit: s.submit, RoleAuth: config.RoleAuthSecret, PollerSecretID: "poller", SubmitSecretID: "submit"},
			API:      config.API{BaseURL: sume.URL + "/v1"},
		},
		cache: secrets.NewCache(s.vault),
		log:   telemetry.NewLogger(io.Discard, 0),
	}
	return s
}

// url returns the address of the stack's database, with another login if user is set.
func (s *stack) url(base, user, password string) string {
	s.t.Helper()
	u, err := url.Parse(base)
	if err != nil {
		s.t.Fatal(err)
	}
	u.Path = "/" + s.database
	if user != "" {
		u.User = url.UserPassword(user, password)
	}
	return u.String()
}

// exec runs statements in one session.
func (s *stack) exec(databaseURL string, statements ...string) {
	s.t.Helper()
	if err := s.try(databaseURL, statements...); err != nil {
		s.t.Fatal(err)
	}
}

func (s *stack) try(databaseURL string, statements ...string) error {
	s.t.Helper()
	ctx := s.t.Context()
	conn, err := pgx.Connect(ctx, databaseURL)
	if err != nil {
		return err
	}
	defer func() { _ = conn.Close(ctx) }()
	for _, statement := range statements {
		if _, err := conn.Exec(ctx, statement); err != nil {
			return fmt.Errorf("%s: %w", statement, err)
		}
	}
	return nil
}

// value returns the one value of a query as the superuser sees it.
func (s *stack) value(query string, args ...any) string {
	s.t.Helper()
	conn, err := pgx.Connect(s.t.Context(), s.superuser)
	if err != nil {
		s.t.Fatal(err)
	}
	defer func() { _ = conn.Close(s.t.Context()) }()
	var got string
	if err := conn.QueryRow(s.t.Context(), query, args...).Scan(&got); err != nil {
		s.t.Fatalf("%s: %v", query, err)
	}
	return got
}

// invoke runs the function without a payload, and checks that no error holds a
// password.
func (s *stack) invoke() (string, error) {
	s.t.Helper()
	ctx := s.t.Context()
	if s.within > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, s.within)
		defer cancel()
	}
	answer, err := s.h.Invoke(ctx, nil)
	for _, password := range []string{adminPassword, url.QueryEscape(adminPassword), url.UserPassword("", adminPassword).String()[1:], "first'pw", "second pw", "SCRAM-SHA-256"} {
		if err != nil && strings.Contains(err.Error(), password) {
			s.t.Errorf("the error holds a password: %v", err)
		}
	}
	return string(answer), err
}

func (s *stack) mustInvoke(want string) {
	s.t.Helper()
	if got, err := s.invoke(); err != nil || got != want {
		s.t.Fatalf("got %s, error %v; want %s", got, err, want)
	}
}

// refuses invokes and wants an error of one line that contains each string.
func (s *stack) refuses(want ...string) {
	s.t.Helper()
	answer, err := s.invoke()
	if err == nil {
		s.t.Fatalf("got %s, want an error with %q", answer, want)
	}
	for _, part := range want {
		if !strings.Contains(err.Error(), part) || strings.Contains(err.Error(), "\n") {
			s.t.Errorf("got %v, want one line with %q", err, part)
		}
	}
}
