package main

import (
	"context"

	"sumepoller/internal/poller"
	"sumepoller/internal/postgres"
	"sumepoller/internal/postgres/jobs"
	"sumepoller/internal/postgres/requests"
)

// table is the database as an invocation uses it. It notes whether the backlog
// was counted.
type table struct {
	*jobs.Store
	*requests.Table
	counted *bool
}

func (t table) Backlog(ctx context.Context) (poller.Backlog, error) {
	b, err := t.Store.Backlog(ctx)
	*t.counted = err == nil
	return b, err
}

// connect opens the invocation's pool. The caller has to disconnect, since a
// frozen sandbox must not hold a connection.
func (inv *invocation) connect(ctx context.Context) (t table, disconnect func(), err error) {
	pool, err := postgres.Connect(ctx, inv.cfg.Database, inv.cache)
	if err != nil {
		return table{}, nil, err
	}
	t = table{Store: jobs.New(pool), Table: requests.New(pool), counted: &inv.counted}
	return t, func() { postgres.Disconnect(inv.ctx, pool) }, nil
}
