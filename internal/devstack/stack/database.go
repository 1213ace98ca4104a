package stack

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"net/url"
	"strings"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"sumepoller/internal/devstack/server"
)

// database is made for one make run, on a server made for it too unless the
// caller named one.
type database struct {
	name   string
	url    string
	admin  string         // connection string of the server
	server *server.Server // nil where the caller named one
	pool   *pgxpool.Pool
}

// newDatabase returns what it made with an error too. Close it in every case.
func newDatabase(ctx context.Context, admin string) (*database, error) {
	d := &database{admin: admin}
	if admin == "" {
		s, err := server.Start(ctx, server.Options{})
		if err != nil {
			return d, err
		}
		d.server, d.admin = s, s.URL()
	}
	name := "sumepoller_run_" + strings.ToLower(rand.Text()[:10])
	if err := d.execute(ctx, "CREATE DATABASE "+name); err != nil {
		return d, err
	}
	d.name = name
	var err error
	if d.url, err = withDatabase(d.admin, name); err != nil {
		return d, err
	}
	cfg, err := pgxpool.ParseConfig(d.url)
	if err != nil {
		return d, err
	}
	cfg.MaxConns = 4
	d.pool, err = pgxpool.NewWithConfig(ctx, cfg)
	return d, err
}

// close drops the database, or stops the server that was made for it.
func (d *database) close() {
	if d.pool != nil {
		d.pool.Close()
	}
	if d.server != nil {
		d.server.Stop()
	}
	if d.server != nil || d.name == "" {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), cleanupLimit)
	defer cancel()
	_ = d.execute(ctx, "DROP DATABASE IF EXISTS "+d.name+" WITH (FORCE)")
}

// execute runs one statement as the server's administrator.
func (d *database) execute(ctx context.Context, sql string) error {
	conn, err := pgx.Connect(ctx, d.admin)
	if err != nil {
		return fmt.Errorf("connect to the server: %w", err)
	}
	defer conn.Close(ctx)
	if _, err := conn.Exec(ctx, sql); err != nil {
		return fmt.Errorf("%s: %w", sql, err)
	}
	return nil
}

// withDatabase returns the connection string with another database in it.
func withDatabase(connString, name string) (string, error) {
	if !strings.Contains(connString, "://") {
		return connString + " dbname=" + name, nil // the last one counts
	}
	u, err := url.Parse(connString)
	if err != nil {
		return "", errors.New("the server's connection string is not a URL")
	}
	u.Path = "/" + name
	query := u.Query()
	query.Del("dbname")
	u.RawQuery = query.Encode()
	return u.String(), nil
}
