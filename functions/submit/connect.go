package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"sumepoller/internal/postgres"
	"sumepoller/internal/secrets"
	"sumepoller/internal/submit"
)

// connect opens the invocation's store. Whoever gets it disconnects at the
// end, since a frozen sandbox must hold no connection.
func (h *handler) connect(ctx context.Context) (store *postgres.Submissions, disconnect func(), err error) {
	pool, err := postgres.Connect(ctx, h.cfg.Database, h.cache)
	if err != nil {
		kind := submit.ErrDatabase
		if errors.As(err, new(*secrets.Error)) {
			kind = errSecret
		}
		return nil, nil, fmt.Errorf("%w: %w; nothing was sent", kind, err)
	}
	return postgres.NewSubmissions(pool), func() { disconnectWithin(ctx, pool) }, nil
}

// disconnectWithin closes the pool in bounded time, well before the limit.
func disconnectWithin(ctx context.Context, pool *pgxpool.Pool) {
	within := time.Second
	if deadline, ok := ctx.Deadline(); ok {
		within = min(within, time.Until(deadline)/2)
	}
	postgres.Close(pool, within)
}
