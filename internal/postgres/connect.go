// Package postgres connects to PostgreSQL: TLS, logins by password, secret or IAM,
// retries, and the kinds of errors. Below it is one package for each group of
// statements: jobs for the runs, requests for operator requests, submissions for
// the submit function.
//
// Errors hold no password and no connection string.
package postgres

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"

	"sumepoller/internal/config"
)

const (
	connectTimeout = 4 * time.Second // of one attempt, where the connection string names none
	pingTimeout    = 2 * time.Second // of a connection that has been idle
	driverDefault  = 2 * time.Minute // the driver's default
)

// Connect opens a pool on the database that cfg names, and its first connection, so
// that a refused login is found here. More connections are opened as needed, up to
// cfg.MaxConns. The caller closes the pool (see Close) before the sandbox is
// frozen. logins is needed only for a cfg with a SecretID; its errors are wrapped.
//
// The server's certificate and name are verified in full, except on loopback and
// Unix sockets. A refused password is fetched again once. A server that does not
// answer is tried again for a few seconds.
func Connect(ctx context.Context, cfg config.Database, logins Logins) (*pgxpool.Pool, error) {
	return connect(ctx, cfg, logins, outside{})
}

// outside holds what tests replace. The zero value is for production.
type outside struct {
	region      string // used with credentials
	credentials aws.CredentialsProvider
	dial        pgconn.DialFunc // gets host names, not addresses
}

func connect(ctx context.Context, cfg config.Database, logins Logins, out outside) (*pgxpool.Pool, error) {
	pool, err := open(ctx, cfg, logins, out)
	if err != nil {
		return nil, fmt.Errorf("connect to the database: %w", err)
	}
	err = Retry(ctx, func() error {
		conn, err := pool.Acquire(ctx)
		if err == nil {
			conn.Release()
		}
		return err
	})
	if err != nil {
		Close(pool, time.Second)
		return nil, fmt.Errorf("connect to the database: %w", oneLine{err})
	}
	return pool, nil
}

// open makes the pool without connecting.
func open(ctx context.Context, cfg config.Database, logins Logins, out outside) (*pgxpool.Pool, error) {
	var pc *pgxpool.Config
	var err error
	switch {
	case cfg.URL != "":
		pc, err = parseURL(cfg.URL)
	case cfg.SecretID != "":
		pc, err = secretConfig(ctx, cfg, logins)
	case cfg.Auth == config.DatabaseAuthIAM:
		pc, err = iamConfig(ctx, cfg, out)
	default:
		err = fmt.Errorf("%s is not set", config.DatabaseURL)
	}
	if err != nil {
		return nil, err
	}
	pinText(pc.ConnConfig.RuntimeParams)
	pc.MaxConns = int32(max(1, cfg.MaxConns))
	pc.MinConns, pc.MinIdleConns = 0, 0
	pc.PingTimeout = pingTimeout
	if pc.ConnConfig.ConnectTimeout == driverDefault || pc.ConnConfig.ConnectTimeout == 0 {
		pc.ConnConfig.ConnectTimeout = cmp.Or(cfg.ConnectTimeout, connectTimeout)
	}
	if out.dial != nil {
		pc.ConnConfig.DialFunc = out.dial
		pc.ConnConfig.LookupFunc = func(_ context.Context, host string) ([]string, error) { return []string{host}, nil }
	}
	return pgxpool.NewWithConfig(ctx, pc)
}

// textSettings make the server read and send text as UTF-8, and take backslashes in
// literals as they are, which the driver's simple protocol needs. They are sent
// with the login, so that a transaction pooler keeps them for the client. They
// override the defaults of the role and the database.
var textSettings = map[string]string{"client_encoding": "UTF8", "standard_conforming_strings": "on"}

// pinText overrides the connection string with textSettings. It appends them to
// "options" (PGOPTIONS) too, which a pooler may read last.
func pinText(params map[string]string) {
	maps.DeleteFunc(params, func(name, _ string) bool {
		_, pinned := textSettings[strings.ToLower(name)]
		return pinned
	})
	for name, value := range textSettings {
		params[name] = value
		if params["options"] != "" {
			params["options"] += " -c " + name + "=" + value
		}
	}
}

// Close closes the pool and waits for that no longer than within: the caller has to
// answer although a connection hangs.
func Close(pool *pgxpool.Pool, within time.Duration) {
	closed := make(chan struct{})
	go func() {
		pool.Close()
		close(closed)
	}()
	timer := time.NewTimer(within)
	defer timer.Stop()
	select {
	case <-closed:
	case <-timer.C:
	}
}

// Disconnect closes the pool at the end of an invocation: within a second, and
// within half of the time left until ctx's deadline.
func Disconnect(ctx context.Context, pool *pgxpool.Pool) {
	within := time.Second
	if deadline, ok := ctx.Deadline(); ok {
		within = min(within, time.Until(deadline)/2)
	}
	Close(pool, within)
}

// parseURL reads a connection string. Its errors hold nothing of it.
func parseURL(raw string) (*pgxpool.Config, error) {
	pc, local, err := config.ParseURL(raw)
	if err != nil || local {
		return pc, err
	}
	if pc, err = pgxpool.ParseConfig(withFullVerification(raw)); err != nil {
		return nil, fmt.Errorf("%s does not parse", config.DatabaseURL)
	}
	return pc, trustRDS(pc.ConnConfig)
}

// parseFields makes a configuration of values that need no encoding. The password
// is set later.
func parseFields(host string, port int, name, user string) (*pgxpool.Config, error) {
	quote := strings.NewReplacer(`\`, `\\`, `'`, `\'`)
	text := fmt.Sprintf(`host='%s' port=%d dbname='%s' user='%s'`, quote.Replace(host), port, quote.Replace(name), quote.Replace(user))
	if config.LocalHost(host) {
		return pgxpool.ParseConfig(text + ` sslmode=prefer`)
	}
	pc, err := pgxpool.ParseConfig(text + ` sslmode=verify-full`)
	if err != nil {
		return nil, err
	}
	return pc, trustRDS(pc.ConnConfig)
}

// oneLine formats an error as one line. The driver writes a line for each address
// of a host.
type oneLine struct{ error }

func (e oneLine) Unwrap() error { return e.error }

func (e oneLine) Error() string {
	fields := strings.FieldsFunc(e.error.Error(), func(r rune) bool { return r == '\n' || r == '\r' })
	for i := range fields {
		fields[i] = strings.TrimSpace(fields[i])
	}
	return strings.ReplaceAll(strings.Join(fields, "; "), ":; ", ": ")
}

// watchLogin calls refused when the server refuses the login.
func watchLogin(cc *pgx.ConnConfig, refused func()) {
	next := cc.OnPgError
	cc.OnPgError = func(conn *pgconn.PgConn, err *pgconn.PgError) bool {
		if refusedLogin(err) {
			refused()
		}
		return next == nil || next(conn, err)
	}
}
