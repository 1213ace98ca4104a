// Package model plays random histories on a store and holds it to a model: a
// few rules in Go for what each row is, who may have it and what each answer
// has to be. It is a test, of any poller.Queue over the table.
//
// Several claimants claim, settle, release, crash and ask again where they saw
// no answer; leases run out; rows come in the past, are reopened and stopped;
// an older worker that knows three columns holds row locks meanwhile. After
// every step the whole table and the day's reads have to be as the model says.
// At the end each pending row must be had, and each finish announced once.
//
// A failure names its seed: -rapid.seed plays the history again, but for who
// comes first where several act at the same time. -rapid.checks plays more.
package model

import (
	"context"
	"testing"

	"github.com/jackc/pgx/v5"
	"pgregory.net/rapid"

	"sumepoller/internal/pgtest"
	"sumepoller/internal/poller"
	"sumepoller/internal/postgres/jobs"
)

// newBench makes a database for checks of the store.
func newBench(t *testing.T, store func(b bench) poller.Queue) bench {
	t.Helper()
	url := pgtest.URL(t)
	b := bench{ctx: t.Context(), pool: pgtest.Pool(t, url)}
	if _, err := b.pool.Exec(t.Context(), refusalsSQL); err != nil {
		t.Fatal(err)
	}
	listener, err := pgx.Connect(t.Context(), url)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = listener.Close(context.WithoutCancel(t.Context())) })
	b.listener = listener
	b.store = func() poller.Queue { return store(b) }
	return b
}

// agree fails with what the model forbids.
func (b bench) agree(t *rapid.T) {
	if d := b.verdict(t); d != "" {
		t.Fatal(string(d))
	}
}

// verdict plays one history and returns where the store strays; empty: nowhere.
func (b bench) verdict(t *rapid.T) (d disagreement) {
	defer func() {
		switch p := recover().(type) {
		case nil, midnight:
		case disagreement:
			d = p
		default:
			panic(p)
		}
	}()
	b.check(t)
	return ""
}

func TestModel_Store(t *testing.T) {
	t.Parallel()
	b := newBench(t, func(b bench) poller.Queue { return jobs.New(b.pool) })
	rapid.Check(t, b.agree)
}
