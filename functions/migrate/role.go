package main

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"

	"sumepoller/internal/config"
	"sumepoller/migrations"
)

// role is the database role of another function.
type role struct {
	name     string
	auth     string // config.RoleAuthIAM or config.RoleAuthSecret
	secret   string // id of the secret that holds its password; RoleAuthSecret only
	password string // appears in no log and no error
	rights   migrations.Rights
}

// limits are set as defaults of each role in this database, so that they also work
// through a transaction pooler. They end a statement that hangs; no statement of the
// product needs nearly so long.
var limits = [][2]string{
	{"statement_timeout", "30s"},
	{"lock_timeout", "10s"},
	{"idle_in_transaction_session_timeout", "30s"},
}

// roles returns the configured roles, with the passwords from their secrets.
func (h *handler) roles(ctx context.Context) ([]role, error) {
	c := h.cfg.Roles
	roles := []role{
		{name: c.Poller, auth: c.RoleAuth, secret: c.PollerSecretID, rights: migrations.PollerRights},
		{name: c.Submit, auth: c.RoleAuth, secret: c.SubmitSecretID, rights: migrations.SubmitterRights},
	}
	for i, r := range roles {
		if r.secret == "" {
			continue
		}
		login, err := h.cache.Login(ctx, r.secret)
		if err != nil {
			return nil, fmt.Errorf("secret: %w", err)
		}
		if login.Username != r.name {
			return nil, fmt.Errorf("secret: %s: its username is not the role %s: write that name into the secret, or name the secret's role in the settings", r.secret, r.name)
		}
		roles[i].password = login.Password
	}
	return roles, nil
}

// rolesKey is the advisory lock for making roles: "roles" in ASCII.
const rolesKey int64 = 0x726f6c6573

// makeRoles makes or updates the roles in one transaction, so that a session of one
// of them has either the old rights or the new ones.
func makeRoles(ctx context.Context, pool *pgxpool.Pool, roles []role) error {
	return pgx.BeginFunc(ctx, pool, func(tx pgx.Tx) error {
		if _, err := tx.Exec(ctx, `SELECT pg_advisory_xact_lock($1)`, rolesKey); err != nil {
			return err
		}
		for _, r := range roles {
			if err := makeRole(ctx, tx, r); err != nil {
				return fmt.Errorf("make role %s: %w", r.name, plain(err))
			}
			if err := grant(ctx, tx, r); err != nil {
				return fmt.Errorf("grant to role %s: %w", r.name, plain(err))
			}
		}
		return nil
	})
}

func makeRole(ctx context.Context, tx pgx.Tx, r role) error {
	var exists, me, iam, member bool
	if err := tx.QueryRow(ctx, `
SELECT EXISTS (SELECT FROM pg_roles WHERE rolname = $1),
       $1::text IN (current_user, session_user),
       EXISTS (SELECT FROM pg_roles WHERE rolname = 'rds_iam'),
       EXISTS (SELECT FROM pg_auth_members m
                WHERE m.member = (SELECT oid FROM pg_roles WHERE rolname = $1)
                  AND m.roleid = (SELECT oid FROM pg_roles WHERE rolname = 'rds_iam'))`,
		r.name).Scan(&exists, &me, &iam, &member); err != nil {
		return err
	}
	name := pgx.Identifier{r.name}.Sanitize()
	var statements []string
	switch {
	case me:
		return errors.New("it is the administrator's role: name another in the settings")
	case r.auth == config.RoleAuthIAM && !iam:
		return errors.New("this server has no role rds_iam, so it has no IAM login: set auth \"secret\" in the settings, or use RDS or Aurora")
	case !exists:
		statements = append(statements, `CREATE ROLE `+name)
	}
	if r.auth == config.RoleAuthIAM {
		statements = append(statements, `ALTER ROLE `+name+` LOGIN`, `GRANT rds_iam TO `+name)
	} else {
		verifier, err := scramVerifier(r.password)
		if err != nil {
			return fmt.Errorf("secret %s: %w", r.secret, err)
		}
		// A member of rds_iam cannot use a password.
		if member {
			statements = append(statements, `REVOKE rds_iam FROM `+name)
		}
		statements = append(statements, `ALTER ROLE `+name+` LOGIN PASSWORD `+literal(verifier))
	}
	database := pgx.Identifier{tx.Conn().Config().Database}.Sanitize()
	for _, limit := range limits {
		statements = append(statements, `ALTER ROLE `+name+` IN DATABASE `+database+` SET `+limit[0]+` = `+literal(limit[1]))
	}
	return execute(ctx, tx, statements)
}

func execute(ctx context.Context, tx pgx.Tx, statements []string) error {
	for _, s := range statements {
		if _, err := tx.Exec(ctx, s); err != nil {
			return err
		}
	}
	return nil
}

// literal quotes a string for a statement that takes no parameters.
func literal(s string) string { return `'` + strings.ReplaceAll(s, `'`, `''`) + `'` }

// plain reduces a server's error to its message, on one line.
func plain(err error) error {
	pgErr, ok := err.(*pgconn.PgError) //nolint:errorlint // a wrapped error has words already and stays as it is
	if !ok {
		return err
	}
	return fmt.Errorf("%s (SQLSTATE %s)", strings.ReplaceAll(pgErr.Message, "\n", " "), pgErr.Code)
}
