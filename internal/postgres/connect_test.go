package postgres_test

import (
	"context"
	"encoding/json"
	"errors"
	"net/url"
	"strings"
	"sync"
	"testing"
	"time"

	"sumepoller/internal/config"
	"sumepoller/internal/postgres"
	"sumepoller/internal/secrets"
)

const dbHost = "db.example.test"

// vault is a Secrets Manager with one secret.
type vault struct {
	mu      sync.Mutex
	value   string
	fetches int
}

func (v *vault) Fetch(context.Context, string) (string, error) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.fetches++
	return v.value, nil
}

func (v *vault) set(value string) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.value = value
}

func (v *vault) count() int {
	v.mu.Lock()
	defer v.mu.Unlock()
	return v.fetches
}

func login(password string, more map[string]any) string {
	fields := map[string]any{"username": "poller", "password": password}
	for name, value := range more {
		fields[name] = value
	}
	text, _ := json.Marshal(fields)
	return string(text)
}

// Passwords with characters that a URL reserves work, and no unverified server gets
// one.
func TestConnect_Verification(t *testing.T) {
	t.Parallel()
	ca, other := newAuthority(t), newAuthority(t)
	s := startServer(t, ca)
	const password = `a#b%c?d/e:f@g[h i'j\k"`
	s.setPassword(t, password)
	at := func(host string, query ...string) config.Database {
		u := url.URL{Scheme: "postgres", User: url.UserPassword("poller", password), Host: host, Path: "/app", RawQuery: strings.Join(query, "&")}
		return config.Database{URL: u.String(), MaxConns: 2}
	}
	root := "sslrootcert=" + url.QueryEscape(ca.file)
	keywords := `host=` + dbHost + ` user=poller dbname=app sslrootcert=` + ca.file +
		` password='` + strings.NewReplacer(`\`, `\\`, `'`, `\'`).Replace(password) + `'`
	for name, c := range map[string]struct {
		cfg  config.Database
		want string // in the error; empty: connects
	}{
		"signed by a known authority":      {at(dbHost, root), ""},
		"verify-full":                      {at(dbHost, root, "sslmode=verify-full"), ""},
		"verify-ca":                        {at(dbHost, root, "sslmode=verify-ca"), ""},
		"in words":                         {config.Database{URL: keywords}, ""},
		"signed by nobody known":           {at(dbHost), "signed by unknown authority"},
		"signed by another authority":      {at(dbHost, "sslrootcert="+url.QueryEscape(other.file)), "signed by unknown authority"},
		"another host's certificate":       {at("other.example.test", root), "valid for " + dbHost},
		"another host's, only verify-ca":   {at("other.example.test", root, "sslmode=verify-ca"), "valid for " + dbHost},
		"an authority's file that is away": {at(dbHost, "sslrootcert=/nowhere.pem"), "/nowhere.pem"},
		"sslmode=disable":                  {at(dbHost, "sslmode=disable"), "DATABASE_URL: sslmode=disable does not verify the server"},
		"sslmode=allow":                    {at(dbHost, "sslmode=allow"), "sslmode=allow does not verify"},
		"sslmode=prefer":                   {at(dbHost, "sslmode=prefer"), "sslmode=prefer does not verify"},
		"sslmode=require":                  {at(dbHost, root, "sslmode=require"), "sslmode=require does not verify"},
		"sslmode=require in words":         {config.Database{URL: keywords + " sslmode=require"}, "sslmode=require does not verify"},
		"a password that was not encoded":  {config.Database{URL: "postgres://poller:" + password + "@" + dbHost + "/app"}, "DATABASE_URL: does not parse"},
		"a password of another role":       {config.Database{URL: strings.Replace(at(dbHost, root).URL, "a%23b", "wrong", 1)}, "28P01"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			pool, err := postgres.ConnectTo(t.Context(), s.address, c.cfg, nil)
			if err == nil {
				defer postgres.Close(pool, time.Minute)
				var encrypted bool
				if err := pool.QueryRow(t.Context(), `SELECT ssl FROM pg_stat_ssl WHERE pid = pg_backend_pid()`).Scan(&encrypted); err != nil || !encrypted {
					t.Errorf("encrypted: %v, %v", encrypted, err)
				}
			}
			check(t, err, c.want)
			for _, part := range []string{password, "a%23b", "c?d", "g[h", "h i"} {
				if err != nil && strings.Contains(err.Error(), part) {
					t.Errorf("the error holds a part of the password: %v", err)
				}
			}
		})
	}
}

func check(t *testing.T, err error, want string) {
	t.Helper()
	switch {
	case err == nil && want != "":
		t.Errorf("connected, want an error with %q", want)
	case err == nil:
	case want == "" || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "\n") || !strings.HasPrefix(err.Error(), "connect to the database: "):
		t.Errorf("error %q, want one line with %q", err, want)
	}
}

// A password that was rotated in the secret is fetched once after the old one is
// refused.
func TestConnect_RefusedPassword(t *testing.T) {
	t.Parallel()
	ca := newAuthority(t)
	s := startServer(t, ca)
	const oldPassword, newPassword = "old # % ? / : @ [ ", "new ' \\ \""
	s.setPassword(t, oldPassword)
	v := &vault{value: login(oldPassword, map[string]any{"host": "127.0.0.1", "port": portOf(t, s.address), "dbname": "app"})}
	cache := secrets.NewCache(v)
	cfg := config.Database{SecretID: "db", MaxConns: 2}
	connect := func() error {
		pool, err := postgres.ConnectTo(t.Context(), s.address, cfg, cache)
		if err == nil {
			postgres.Close(pool, time.Minute)
		}
		return err
	}
	if err := connect(); err != nil {
		t.Fatal(err)
	}

	s.setPassword(t, newPassword) // the secret still holds the old one
	err := connect()
	if postgres.SQLState(err) != "28P01" || strings.Contains(err.Error(), "old #") {
		t.Errorf("error %v, want 28P01 and no password", err)
	}
	if n := v.count(); n != 2 {
		t.Errorf("%d fetches, want a second one", n)
	}

	v.set(login(newPassword, map[string]any{"host": "127.0.0.1", "port": portOf(t, s.address), "dbname": "app"}))
	cache.Rearm() // the next invocation
	if err := connect(); err != nil {
		t.Errorf("after the secret followed: %v", err)
	}
	if n := v.count(); n != 3 {
		t.Errorf("%d fetches, want three", n)
	}
}

func TestConnect_IncompleteSecret(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		secret string
		cfg    config.Database
		want   string
	}{
		"no host":       {login("p", nil), config.Database{Name: "app"}, "DATABASE_HOST"},
		"no name":       {login("p", map[string]any{"host": "h"}), config.Database{}, "DATABASE_NAME"},
		"no login":      {`{"password": "hunter2"}`, config.Database{}, "no username"},
		"not JSON":      {"hunter2", config.Database{}, "no JSON"},
		"all of it":     {login("hunter2", nil), config.Database{Host: "127.0.0.1", Port: 1, Name: "app"}, "127.0.0.1"},
		"host's quotes": {login("hunter2", nil), config.Database{Host: `127.0.0.1' sslmode='disable`, Port: 1, Name: "app"}, "connect to the database"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
			defer cancel()
			c.cfg.SecretID = "db"
			_, err := postgres.Connect(ctx, c.cfg, secrets.NewCache(&vault{value: c.secret}))
			check(t, err, c.want)
			if err != nil && strings.Contains(err.Error(), "hunter2") {
				t.Errorf("the error holds the password: %v", err)
			}
			var secret *secrets.Error
			if strings.HasPrefix(c.want, "no ") && !errors.As(err, &secret) {
				t.Errorf("error %v, want a *secrets.Error", err)
			}
		})
	}
}
