// Package pgtest gives each test its own PostgreSQL database, on the server that DEV_DATABASE_URL names. Test only.
//
// Databases are cloned from a template that holds the migrated schema, made
// once per server and schema, and dropped when the test ends. It creates and
// drops databases whose names begin with sumepoller_, and touches no other.
// Several test processes may use one server at the same time.
//
// A test process that imports it sees none of the caller's settings of
// PostgreSQL and AWS.
package pgtest

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"net/url"
	"os"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"

	"sumepoller/internal/devstack/environment"
	"sumepoller/migrations"
)

// Also where go test was started by hand.
func init() { environment.Isolate() }

// timeout bounds each step against the server.
const timeout = time.Minute

// URL returns the URL of a fresh database that holds the migrated schema and
// no rows. It is dropped at the test's cleanup, connected or not.
func URL(t testing.TB) string {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), timeout)
	defer cancel()
	server := connect(ctx, t)
	defer func() { _ = server.Close(context.WithoutCancel(ctx)) }()
	// Another checkout's tests, of another schema, may clear our template
	// away between the two steps.
	for range 5 {
		template, err := ensureTemplate(ctx, server)
		if err != nil {
			t.Fatalf("make the template database: %v", err)
		}
		name, err := create(ctx, t, server, template)
		if err == nil {
			return databaseURL(server, name)
		}
		var pgErr *pgconn.PgError
		if !errors.As(err, &pgErr) || pgErr.Code != "3D000" && pgErr.Code != "55006" {
			t.Fatalf("clone the template database: %v", err)
		}
	}
	t.Fatal("the template database is cleared away again and again")
	return ""
}

// Empty returns the URL of a fresh database without the schema. It is dropped
// at the test's cleanup, connected or not.
func Empty(t testing.TB) string {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), timeout)
	defer cancel()
	server := connect(ctx, t)
	defer func() { _ = server.Close(context.WithoutCancel(ctx)) }()
	name, err := create(ctx, t, server, "template0")
	if err != nil {
		t.Fatalf("create a database: %v", err)
	}
	return databaseURL(server, name)
}

// Encoded returns the URL of a fresh database in another encoding, such as
// LATIN1, that holds the migrated schema and no rows. It is dropped at the
// test's cleanup, connected or not.
func Encoded(t testing.TB, encoding string) string {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), timeout)
	defer cancel()
	server := connect(ctx, t)
	defer func() { _ = server.Close(context.WithoutCancel(ctx)) }()
	name, err := create(ctx, t, server, "template0 ENCODING '"+encoding+"' LOCALE 'C'")
	if err != nil {
		t.Fatalf("create a database in %s: %v", encoding, err)
	}
	config := &pgxpool.Config{ConnConfig: server.Config()}
	config.ConnConfig.Database = name
	if _, err := migrations.Up(ctx, config); err != nil {
		t.Fatalf("migrate a database in %s: %v", encoding, err)
	}
	return databaseURL(server, name)
}

// Pool opens a pool on a database that URL or Empty gave. It is closed at the
// test's cleanup, before the database is dropped.
func Pool(t testing.TB, databaseURL string) *pgxpool.Pool {
	t.Helper()
	pool, err := pgxpool.New(t.Context(), databaseURL)
	if err != nil {
		t.Fatalf("open a pool: %v", err)
	}
	t.Cleanup(pool.Close)
	return pool
}

// connect opens a connection to the server's maintenance database.
func connect(ctx context.Context, t testing.TB) *pgx.Conn {
	t.Helper()
	server := os.Getenv("DEV_DATABASE_URL")
	if server == "" {
		t.Fatal("no PostgreSQL to test on: run `make test`, which starts one, or name a server in DEV_DATABASE_URL")
	}
	conn, err := pgx.Connect(ctx, server)
	if err != nil {
		t.Fatalf("the PostgreSQL that DEV_DATABASE_URL names does not answer (`make test` without it starts one): %v", err)
	}
	return conn
}

// create makes a database and has it dropped at t's cleanup.
func create(ctx context.Context, t testing.TB, server *pgx.Conn, template string) (string, error) {
	t.Helper()
	random := make([]byte, 6)
	_, _ = rand.Read(random)
	name := fmt.Sprintf("%s%d_%s", testPrefix, time.Now().Unix(), hex.EncodeToString(random))
	if _, err := server.Exec(ctx, `CREATE DATABASE `+name+` TEMPLATE `+template); err != nil {
		return "", err
	}
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(t.Context()), timeout)
		defer cancel()
		server := connect(ctx, t)
		defer func() { _ = server.Close(ctx) }()
		if _, err := server.Exec(ctx, `DROP DATABASE IF EXISTS `+name+` WITH (FORCE)`); err != nil {
			t.Errorf("drop the test's database: %v", err)
		}
	})
	return name, nil
}

// databaseURL names another database on server, with the same login.
func databaseURL(server *pgx.Conn, name string) string {
	config := server.Config()
	u, err := url.Parse(os.Getenv("DEV_DATABASE_URL"))
	if err == nil && u.Scheme != "" {
		u.Path = "/" + name
		return u.String()
	}
	// The server was named in the keyword form.
	query := url.Values{"host": {config.Host}, "port": {fmt.Sprint(config.Port)}}
	u = &url.URL{Scheme: "postgres", User: url.UserPassword(config.User, config.Password), Path: "/" + name, RawQuery: query.Encode()}
	return u.String()
}
