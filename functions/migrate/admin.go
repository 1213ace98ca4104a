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

// keepAdmin finds out whether the administrator still logs in. From PostgreSQL
// 16 on whoever makes a role is a member of it; a server that counts this takes
// the maker of a role with rds_iam for a member of rds_iam too, and refuses his
// password. The session that is open then takes rds_iam back.
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
			return fmt.Errorf("take rds_iam back from role %s, for which this server refuses the administrator's password: %w", r.name, plain(err))
		}
	}
	return fmt.Errorf("with rds_iam for the functions' roles this server refuses their maker, the administrator, the password; rds_iam was taken back: "+
		"have another role make them, or take auth \"secret\" in the settings (SQLSTATE %s)", refused.Code)
}
