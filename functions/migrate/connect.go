package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strconv"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"

	"sumepoller/internal/postgres"
)

const (
	dialLimit  = 5 * time.Second  // of each look-up and each dial of a check
	loginLimit = 20 * time.Second // of a login, the secret's fetch included
	closeLimit = time.Second      // of taking leave
)

// connect logs in as the administrator. Where that does not succeed, the error
// says how far it came.
func (h *handler) connect(ctx context.Context) (*pgxpool.Pool, error) {
	within, cancel := context.WithTimeout(ctx, loginLimit)
	defer cancel()
	pool, err := postgres.Connect(within, h.cfg.Database, h.cache)
	if err == nil {
		return pool, nil
	}
	var refused *pgconn.ConnectError
	if errors.As(err, &refused) {
		if cause := reach(ctx, refused.Config); cause != nil {
			return nil, cause
		}
	}
	return nil, err
}

// reach finds out whether it is the network that keeps the database away:
// first the name, then the port. TLS and the login speak for themselves.
func reach(ctx context.Context, c *pgconn.Config) error {
	if len(c.Host) > 0 && c.Host[0] == '/' {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, dialLimit)
	defer cancel()
	if _, err := net.DefaultResolver.LookupHost(ctx, c.Host); err != nil {
		return fmt.Errorf("database: the name %s does not resolve: correct the host in the settings, and have the VPC resolve names (enableDnsSupport)", c.Host)
	}
	conn, err := (&net.Dialer{}).DialContext(ctx, "tcp", net.JoinHostPort(c.Host, strconv.Itoa(int(c.Port))))
	if err != nil {
		return fmt.Errorf("database: port %d of %s does not answer: let the functions' security group in at the database's, and let the subnets' routes and network ACLs through", c.Port, c.Host)
	}
	return conn.Close()
}

// loginAs opens one connection as a role, in the way that the functions do, and
// closes it.
func (h *handler) loginAs(ctx context.Context, pool *pgxpool.Pool, r role) error {
	ctx, cancel := context.WithTimeout(ctx, loginLimit)
	defer cancel()
	admin := pool.Config().ConnConfig
	if r.secret != "" {
		config := admin.Copy()
		config.User, config.Password = r.name, r.password
		conn, err := pgx.ConnectConfig(ctx, config)
		if err != nil {
			return err
		}
		return conn.Close(ctx)
	}
	database := h.cfg.Database
	database.URL, database.SecretID = "", ""
	database.Host, database.Port, database.Name = admin.Host, int(admin.Port), admin.Database
	database.User, database.Auth = r.name, r.auth
	as, err := postgres.Connect(ctx, database, h.cache)
	if err != nil {
		return err
	}
	postgres.Close(as, closeLimit)
	return nil
}
