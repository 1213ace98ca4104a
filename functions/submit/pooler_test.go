//go:build pooler

package main_test

import (
	"fmt"
	"sync"
	"testing"
	"time"

	"sumepoller/internal/pgtest"
	"sumepoller/internal/pgtest/pooler"
	"sumepoller/internal/sume/sumetest"
)

// throughPooler connects the fixture to its database through a PgBouncer in
// transaction mode with one server connection.
func (m *fixture) throughPooler(t *testing.T) {
	t.Helper()
	m.databaseURL = pgtest.With(t, pooler.Start(t, m.databaseURL, 1), "default_query_exec_mode", "exec")
}

func TestSubmit_Pooler(t *testing.T) {
	t.Parallel()
	m := newFixture(t, sumetest.Options{Latency: 100 * time.Millisecond})
	m.throughPooler(t)
	var wg sync.WaitGroup
	for range 2 {
		f := m.sandbox(t)
		wg.Go(func() {
			for i := range 10 {
				key := fmt.Sprintf("order-%d", i)
				if got, err := f.Invoke(t.Context(), payload(key)); err != nil || got.Failure != nil {
					t.Errorf("%s: %v, %v", key, got.Failure, err)
				}
			}
		})
	}
	wg.Wait()
	for i := range 10 {
		m.wantSettled(t, fmt.Sprintf("order-%d", i))
	}
	if billed := m.api.Stats().Billed; billed != 10 {
		t.Errorf("10 orders, %d jobs billed", billed)
	}
}

func TestSubmit_PoolerTableRefuses(t *testing.T) {
	t.Parallel()
	m := newFixture(t, sumetest.Options{})
	m.throughPooler(t)
	f := m.sandbox(t)
	table := refusedTables["deferred foreign key"]
	m.exec(t, table.refuse)
	wantError(t, f, payload("order-42"), "database: nothing was sent", table.names)
	m.exec(t, table.fix)
	refuse := func() {
		m.exec(t, `ALTER TABLE video_jobs ADD CONSTRAINT of_an_order FOREIGN KEY (job_id) REFERENCES orders (id)`)
	}
	m.onPost.Store(&refuse)
	wantError(t, f, payload("order-42"), "unrecorded: job_bought_1", table.names)
	wantError(t, f, resend("order-42"), "unrecorded: job_bought_1", table.names)
	m.exec(t, table.fix)
	m.wantBought(t, f)
}
