//go:build pooler

package main_test

import (
	"testing"
	"time"

	"sumepoller/internal/pgtest/pooler"
	"sumepoller/internal/sume/sumetest"
)

// Two sandboxes use more connections than the pooler has.
func TestPooler_TwoSandboxes(t *testing.T) {
	t.Parallel()
	s := newStage(t)
	s.slow(5*time.Millisecond, 50*time.Millisecond)
	const rows = 1500
	s.due(t, sumetest.Plan{}, ids("job", rows)...)
	s.database = pooler.Start(t, s.database, 2) + "?default_query_exec_mode=exec&application_name=sandbox"
	first, second := s.sandbox(t, "POLL_BUDGET=40s"), s.sandbox(t, "POLL_BUDGET=40s")
	one, other := first.begin(t, ""), second.begin(t, "")
	a, b := answered(t, one), answered(t, other)
	if a.Claimed+b.Claimed != rows || a.Polled == 0 || b.Polled == 0 {
		t.Errorf("%d and %d rows claimed, want %d together and some each", a.Claimed, b.Claimed, rows)
	}
	s.ended(t, map[string]int{"completed": rows})
	if reads := s.api.Stats().Reads; reads != rows {
		t.Errorf("%d reads, want %d", reads, rows)
	}
	s.neverTogether(t)
	const open = `SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND application_name = 'sandbox'`
	if n := s.number(t, open); n < 1 || n > 2 {
		t.Errorf("%d server connections, want at most the pooler's two", n)
	}
}

func TestPooler_Formats(t *testing.T) {
	t.Parallel()
	for _, mode := range modes[1:] { // the first one prepares statements by name
		t.Run(mode, func(t *testing.T) {
			t.Parallel()
			s := newStage(t)
			s.database = pooler.Start(t, s.database, 1) + "?default_query_exec_mode=" + mode
			s.everyRequest(t)
		})
	}
}
