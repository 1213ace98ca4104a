package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"sumepoller/internal/config"
	"sumepoller/internal/postgres"
	"sumepoller/internal/secrets"
	"sumepoller/migrations"
)

const (
	// longest limits an invocation that has no deadline.
	longest = 10 * time.Minute
	// reserve is the end of an invocation's time, kept for the answer and the checks.
	reserve = 20 * time.Second
)

// handler serves invocations, one at a time.
type handler struct {
	cfg   config.Migrate
	cache *secrets.Cache
	log   *slog.Logger
}

// Invoke implements lambda.Handler, since a handler with a typed event refuses an
// empty payload.
func (h *handler) Invoke(ctx context.Context, _ []byte) ([]byte, error) {
	result, err := h.run(ctx)
	for _, warning := range result.Warnings {
		h.log.WarnContext(ctx, "the table accepts the product's writes in part only", "warning", warning)
	}
	if err != nil {
		h.log.ErrorContext(ctx, "not migrated", "from", result.From, "to", result.To, "error", err.Error())
		return nil, err
	}
	h.log.InfoContext(ctx, "migrated", "from", result.From, "to", result.To)
	return json.Marshal(result)
}

// run migrates, makes the roles and checks what the other functions need.
func (h *handler) run(ctx context.Context) (migrations.Result, error) {
	h.cache.Rearm()
	ctx, cancel := context.WithTimeout(ctx, longest)
	defer cancel()
	pool, err := h.connect(ctx)
	if err != nil {
		return migrations.Result{}, err
	}
	defer postgres.Close(pool, closeLimit)
	if err := h.rightDatabase(pool.Config().ConnConfig.Database); err != nil {
		return migrations.Result{}, err
	}
	result, err := h.migrate(ctx, pool)
	if err != nil {
		return result, err
	}
	h.warn(ctx, pool)
	if h.cfg.Roles == (config.Roles{}) {
		return result, nil
	}
	roles, err := h.roles(ctx)
	if err != nil {
		return result, err
	}
	if err := makeRoles(ctx, pool, roles); err != nil {
		return result, err
	}
	if err := h.keepAdmin(ctx, pool, roles); err != nil {
		return result, err
	}
	problems, warnings := h.check(ctx, pool, roles)
	result.Warnings = append(result.Warnings, warnings...)
	return result, errors.Join(problems...)
}

// rightDatabase checks that the administrator's secret names the database that the
// other functions use: the dbname of a secret wins over the variable.
func (h *handler) rightDatabase(at string) error {
	want := h.cfg.Database.Name
	if h.cfg.Database.URL != "" || want == "" || at == want {
		return nil
	}
	return fmt.Errorf("secret %s names the database %q, %s says %q: remove dbname from the secret, or make the two equal",
		h.cfg.Database.SecretID, at, config.DatabaseName, want)
}

// lessReserve ends before ctx, so that there is time to answer and log an error.
func lessReserve(ctx context.Context) (context.Context, context.CancelFunc) {
	deadline, ok := ctx.Deadline()
	if !ok {
		return context.WithCancel(ctx)
	}
	left := time.Until(deadline)
	return context.WithTimeout(ctx, left-min(reserve, left/5))
}

func (h *handler) migrate(ctx context.Context, pool *pgxpool.Pool) (migrations.Result, error) {
	ctx, cancel := lessReserve(ctx)
	defer cancel()
	return migrations.Up(ctx, pool.Config())
}
