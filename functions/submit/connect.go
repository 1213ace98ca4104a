package main

import (
	"context"
	"errors"
	"fmt"

	"sumepoller/internal/postgres"
	"sumepoller/internal/postgres/submissions"
	"sumepoller/internal/secrets"
	"sumepoller/internal/submit"
)

// connect opens the invocation's store. The caller has to disconnect, since a
// frozen sandbox must not hold a connection.
func (h *handler) connect(ctx context.Context) (store *submissions.Store, disconnect func(), err error) {
	pool, err := postgres.Connect(ctx, h.cfg.Database, h.cache)
	if err != nil {
		kind := submit.ErrDatabase
		if errors.As(err, new(*secrets.Error)) {
			kind = errSecret
		}
		return nil, nil, fmt.Errorf("%w: %w; nothing was sent", kind, err)
	}
	return submissions.New(pool), func() { postgres.Disconnect(ctx, pool) }, nil
}
