package main_test

import (
	"net/http"
	"testing"
	"time"

	"sumepoller/internal/config"
	"sumepoller/internal/devstack"
	"sumepoller/internal/sume/sumetest"
)

// Lambda freezes a sandbox during its reads. No transaction and no lock stays
// open, and a second sandbox claims the free rows at once.
func TestFreeze_DuringReads(t *testing.T) {
	t.Parallel()
	s := newStage(t)
	s.slow(time.Second, 0)
	s.due(t, sumetest.Plan{}, ids("job", 60)...)
	database := named(t, s.database, "frozen")
	frozen := s.sandbox(t, "POLL_CONCURRENCY=8", config.DatabaseURL+"="+database)
	answer := frozen.begin(t, "")
	s.read(t, 9) // eight at a time: the first has ended, the rest are under way
	if err := frozen.Freeze(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = frozen.Thaw() })
	s.slow(0, 0)
	until(t, "the frozen sandbox's statements to end", func() bool {
		return s.number(t, `SELECT count(*) FROM pg_stat_activity WHERE application_name = 'frozen' AND datname = current_database() AND state <> 'idle'`) == 0
	})
	s.zero(t, `
SELECT count(*) FROM pg_locks l JOIN pg_stat_activity a USING (pid)
WHERE a.application_name = 'frozen' AND a.datname = current_database() AND l.locktype IN ('tuple', 'transactionid', 'relation')`)
	taken := s.number(t, held)
	if taken == 0 || taken > 16 {
		t.Errorf("%d rows are leased to the frozen sandbox", taken)
	}
	free := s.number(t, waiting)
	second := s.sandbox(t, "POLL_BUDGET=5s").tick(t)
	if second.Finished["completed"] != free {
		t.Errorf("second sandbox: %+v, want the %d rows without a lease", second, free)
	}
	if err := frozen.Thaw(); err != nil {
		t.Fatal(err)
	}
	first := answered(t, answer)
	if first.Finished["completed"] != 60-free || s.number(t, held) > 0 {
		t.Errorf("thawed: %+v, want %d completed", first, 60-free)
	}
	s.ended(t, map[string]int{"completed": 60})
	s.neverTogether(t)
}

// An answer arrives after its lease has expired. It is dropped, and the row
// stays as another run reads or settles it.
func TestFreeze_AnswerAfterLease(t *testing.T) {
	t.Parallel()
	for name, settled := range map[string]bool{"settled by another run": true, "read by another run": false} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newStage(t)
			heard := s.announcements(t)
			gate, reads := s.blockedAPI(t)
			s.due(t, sumetest.Plan{}, "job_1")
			s.api.SetFault("job_1", sumetest.Fault{Times: 1, Body: `{"terminal": true, "sume_status": "failed"}`})
			gated := config.APIBaseURL + "=" + gate
			late := s.sandbox(t, gated, "POLL_LEASE=3s", "SUME_REQUEST_TIMEOUT=2s", "POLL_BUDGET=4s")
			first := late.begin(t, "")
			pass := <-reads
			if err := late.Freeze(); err != nil {
				t.Fatal(err)
			}
			close(pass) // the answer reaches a process that is frozen
			s.read(t, 1)
			until(t, "the answer to be sent", func() bool { return s.api.Stats().InFlight == 0 })
			other := s.sandbox(t, gated, "POLL_LEASE=50s", "SUME_REQUEST_TIMEOUT=40s", "POLL_BUDGET=30s").begin(t, "")
			pass = <-reads
			if !settled {
				late.thawLate(t, first)
				if s.number(t, held) != 1 {
					t.Error("the late answer ended the lease of the other run")
				}
			}
			close(pass)
			if sum := answered(t, other); sum.Finished["completed"] != 1 {
				t.Errorf("the other sandbox: %+v", sum)
			}
			if settled {
				late.thawLate(t, first)
			}
			if s.number(t, `SELECT count(*) FROM video_jobs WHERE state = 'completed' AND polls = 1 AND consecutive_errors = 0 AND last_error IS NULL`) != 1 {
				t.Error("the row is not as the other run settled it")
			}
			once(t, heard(), 1)
		})
	}
}

// thawLate thaws a sandbox, and checks that its run lost its only lease.
func (b *sandbox) thawLate(t *testing.T, answer func() (devstack.Result, error)) {
	t.Helper()
	if err := b.Thaw(); err != nil {
		t.Fatal(err)
	}
	if sum := answered(t, answer); sum.LostLeases != 1 || len(sum.Finished) > 0 || sum.Polled > 0 {
		t.Errorf("the late run: %+v, want a lost lease and nothing else", sum)
	}
}

// blockedAPI serves the API under another address. It sends a channel for each
// read, and answers the read when that channel is closed.
func (s *stage) blockedAPI(t *testing.T) (address string, reads <-chan chan struct{}) {
	t.Helper()
	arrivals := make(chan chan struct{})
	return s.gate(t, func(r *http.Request) {
		pass := make(chan struct{})
		select {
		case arrivals <- pass:
		case <-r.Context().Done():
			return
		}
		select {
		case <-pass:
		case <-r.Context().Done():
		}
	}), arrivals
}
