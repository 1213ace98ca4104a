package main

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"

	"sumepoller/internal/postgres"
	"sumepoller/internal/secrets"
)

const (
	// firstAttempt limits the first attempt to log in, laterAttempt each later
	// one: a database that is starting may answer a connection late or never.
	firstAttempt = 10 * time.Second
	laterAttempt = time.Minute
	attemptPause = time.Second
	refusedLimit = time.Minute // of waiting for a port on which no process listens

	dialLimit  = 5 * time.Second  // of each DNS lookup and each dial of a check
	loginLimit = 20 * time.Second // of a login, including the fetch of the secret
	closeLimit = time.Second      // of closing a pool
)

// connect logs in as the administrator. It waits for a database that is
// starting, until the reserve of ctx's time begins: one that does not answer,
// closes connections or reports that it is starting. If connections are
// refused, it waits for refusedLimit at most. Other errors are returned at
// once. The error says whether name, port or login failed.
func (h *handler) connect(ctx context.Context) (*pgxpool.Pool, error) {
	within, cancel := lessReserve(ctx)
	defer cancel()
	database, started := h.cfg.Database, time.Now()
	database.ConnectTimeout = firstAttempt
	for {
		pool, err := postgres.Connect(within, database, h.cache)
		if err == nil {
			return pool, nil
		}
		refused := errors.Is(err, syscall.ECONNREFUSED)
		if !wakingUp(err) || refused && time.Since(started) > refusedLimit || pause(within, attemptPause) != nil {
			return nil, unreached(ctx, err)
		}
		if database.ConnectTimeout == firstAttempt {
			h.log.InfoContext(ctx, "the database does not accept connections yet: waiting")
		}
		database.ConnectTimeout = laterAttempt
	}
}

// wakingUp reports whether a login failed in a way that a database shows while
// it starts.
func wakingUp(err error) bool {
	var server *pgconn.PgError
	if errors.As(err, &server) {
		switch server.Code {
		case "57P01", "57P02", "57P03", "53300": // shut down, crashed, starting up, too many connections
			return true
		}
		return strings.HasPrefix(server.Code, "08")
	}
	var handshake *net.OpError
	if errors.As(err, new(*net.DNSError)) || errors.As(err, new(*tls.CertificateVerificationError)) || errors.As(err, new(*secrets.Error)) ||
		errors.As(err, &handshake) && (handshake.Op == "remote error" || handshake.Op == "local error") { // a TLS alert
		return false
	}
	var network net.Error
	return errors.As(err, &network) || errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) ||
		errors.Is(err, context.DeadlineExceeded) || errors.Is(err, syscall.ECONNREFUSED) || errors.Is(err, syscall.ECONNRESET) || errors.Is(err, syscall.EPIPE)
}

func pause(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-timer.C:
		return nil
	}
}

// unreached finds the cause of a failed login: the name, the port, or err itself.
func unreached(ctx context.Context, err error) error {
	var refused *pgconn.ConnectError
	if errors.As(err, &refused) {
		if cause := reach(ctx, refused.Config); cause != nil {
			return cause
		}
	}
	return err
}

// reach checks the network between here and the database: first the name, then the
// port. Errors of TLS and of the login need no further check.
func reach(ctx context.Context, c *pgconn.Config) error {
	if len(c.Host) > 0 && c.Host[0] == '/' {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, dialLimit)
	defer cancel()
	if _, err := net.DefaultResolver.LookupHost(ctx, c.Host); err != nil {
		return fmt.Errorf("database: the name %s does not resolve: correct the host in the settings, or turn on DNS in the VPC (enableDnsSupport)", c.Host)
	}
	conn, err := (&net.Dialer{}).DialContext(ctx, "tcp", net.JoinHostPort(c.Host, strconv.Itoa(int(c.Port))))
	if err != nil {
		return fmt.Errorf("database: port %d of %s does not answer: allow the functions' security group in the database's, and check the subnets' routes and network ACLs", c.Port, c.Host)
	}
	return conn.Close()
}

// loginAs opens a pool as a role, as the functions do, with a first connection. The
// caller closes it.
func (h *handler) loginAs(ctx context.Context, pool *pgxpool.Pool, r role) (*pgxpool.Pool, error) {
	ctx, cancel := context.WithTimeout(ctx, loginLimit)
	defer cancel()
	admin := pool.Config().ConnConfig
	if r.secret != "" {
		config := pool.Config()
		config.BeforeConnect = nil // it would log in as the administrator
		config.ConnConfig.User, config.ConnConfig.Password = r.name, r.password
		as, err := pgxpool.NewWithConfig(ctx, config)
		if err != nil {
			return nil, err
		}
		if err := as.Ping(ctx); err != nil {
			postgres.Close(as, closeLimit)
			return nil, err
		}
		return as, nil
	}
	database := h.cfg.Database
	database.URL, database.SecretID = "", ""
	database.Host, database.Port, database.Name = admin.Host, int(admin.Port), admin.Database
	database.User, database.Auth = r.name, r.auth
	return postgres.Connect(ctx, database, h.cache)
}
