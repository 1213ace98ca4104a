package main

import (
	"context"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"

	"sumepoller/internal/config"
	"sumepoller/internal/postgres"
)

// keepAdmin checks that the administrator can still log in. From PostgreSQL 16 on,
// the creator of a role is a member of it. If that role has rds_iam, a server may
// count its creator, the administrator, as a member of rds_iam too and refuse the
// password. Then the open session revokes rds_iam.
func (h *handler) keepAdmin(ctx context.Context, pool *pgxpool.Pool, roles []role) error {
	if h.cfg.Roles.RoleAuth != config.RoleAuthIAM {
		return nil
	}
	within, cancel := context.WithTimeout(ctx, loginLimit)
	defer cancel()
	again, err := postgres.Connect(within, h.cfg.Database, h.cache)
	if err == nil {
		postgres.Close(again, closeLimit)
		return nil
	}
	var refused *pgconn.PgError
	if !errors.As(err, &refused) || refused.Code != "28000" && refused.Code != "28P01" {
		return fmt.Errorf("log in as the administrator again: %w", err)
	}
	for _, r := range roles {
		if _, err := pool.Exec(ctx, `REVOKE rds_iam FROM `+pgx.Identifier{r.name}.Sanitize()); err != nil {
			return fmt.Errorf("revoke rds_iam from role %s, since this server now refuses the administrator's password: %w", r.name, plain(err))
		}
	}
	return fmt.Errorf("once the functions' roles have rds_iam, this server refuses the password of their creator, the administrator; rds_iam was revoked: "+
		"create them as another role, or set auth \"secret\" in the settings (SQLSTATE %s)", refused.Code)
}
