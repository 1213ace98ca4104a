package poller_test

import (
	"context"
	"log/slog"
	"sync/atomic"
	"testing"
	"time"

	"sumepoller/internal/poller"
	"sumepoller/internal/poller/pollertest"
)

// A table and an API in memory, on the clock of the time package.
type (
	fakeTable = pollertest.Table
	fakeAPI   = pollertest.API
)

func newTable() *fakeTable { return pollertest.NewTable() }

// defaults are the contract's, with the API's limits lifted.
func defaults() poller.Settings {
	return poller.Settings{
		Budget: 58 * time.Second, Concurrency: 64, Lease: 30 * time.Second, RequestTimeout: 15 * time.Second,
		DefaultInterval: 15 * time.Second, MinInterval: time.Second, MaxInterval: time.Hour, BackoffMax: 15 * time.Minute,
	}
}

func quiet() *slog.Logger { return slog.New(slog.DiscardHandler) }

// pass runs one invocation with the function's limit.
func pass(t *testing.T, p *poller.Poller, table poller.Table, api poller.Reader, limit time.Duration) (poller.Summary, error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), limit)
	defer cancel()
	return p.Run(ctx, &boundedTable{Table: table}, api, time.Now(), poller.NewSummary("run_1", poller.ModeScheduled))
}

func mustPass(t *testing.T, p *poller.Poller, table poller.Table, api poller.Reader) poller.Summary {
	t.Helper()
	sum, err := pass(t, p, table, api, 90*time.Second)
	if err != nil {
		t.Fatalf("run: %v", err)
	}
	return sum
}

// ticks runs passes on a schedule.
func ticks(t *testing.T, p *poller.Poller, table poller.Table, api poller.Reader, every time.Duration, n int) {
	t.Helper()
	ticker := time.NewTicker(every)
	defer ticker.Stop()
	for range n {
		mustPass(t, p, table, api)
		<-ticker.C
	}
}

// boundedTable fails a run that asks the table again and again without end.
type boundedTable struct {
	poller.Table
	calls atomic.Int32
}

func (b *boundedTable) count() {
	if b.calls.Add(1) > 10_000 {
		panic("the run asks the table without end")
	}
}

func (b *boundedTable) Claim(ctx context.Context, r poller.ClaimRequest) (poller.Claimed, error) {
	b.count()
	return b.Table.Claim(ctx, r)
}

func (b *boundedTable) NextDue(ctx context.Context, own []poller.LeaseID) (time.Duration, bool, error) {
	b.count()
	return b.Table.NextDue(ctx, own)
}

func (b *boundedTable) Today(ctx context.Context) (poller.Day, error) {
	b.count()
	return b.Table.Today(ctx)
}
