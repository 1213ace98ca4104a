package main

import (
	"context"
	"errors"

	"github.com/jackc/pgx/v5/pgxpool"

	"sumepoller/internal/config"
	"sumepoller/internal/secrets"
)

// openPool stands in for postgres.Connect.
func openPool(ctx context.Context, c config.Database, _ *secrets.Cache) (*pgxpool.Pool, error) {
	if c.URL == "" {
		return nil, errors.New("only DATABASE_URL for now")
	}
	return pgxpool.New(ctx, c.URL)
}
