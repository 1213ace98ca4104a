package main_test

import (
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"sumepoller/internal/config"
	"sumepoller/internal/sume/sumetest"
)

// Field case 9.
func TestFrozenSandboxHoldsUpNobody(t *testing.T) {
	t.Parallel()
	s := newStage(t)
	s.slow(time.Second, 0)
	s.due(t, sumetest.Plan{}, ids("job", 60)...)
	database := s.database + "?application_name=frozen"
	frozen := s.sandbox(t, "POLL_CONCURRENCY=8", config.DatabaseURL+"="+database)
	answer := frozen.begin(t, "")
	s.read(t, 9) // eight at a time: the first has ended, the rest are under way
	if err := frozen.Freeze(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = frozen.Thaw() })
	s.slow(0, 0)
	until(t, "the frozen one's statements to end", func() bool {
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
	if second.Finished["completed"] != free || second.ElapsedSeconds > 15 {
		t.Errorf("second sandbox: %+v, want the %d rows that are free, at once", second, free)
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

// Field case 16.
func TestAnswerThatComesAfterItsLeaseChangesNothing(t *testing.T) {
	t.Parallel()
	s := newStage(t)
	heard := s.announcements(t)
	arrived, open := make(chan struct{}, 1), make(chan struct{})
	var first sync.Once
	gate := s.gate(t, func(r *http.Request) {
		if strings.HasPrefix(r.URL.Path, "/v1/jobs/") {
			first.Do(func() {
				arrived <- struct{}{}
				<-open
			})
		}
	})
	s.due(t, sumetest.Plan{}, "job_1")
	s.api.SetFault("job_1", sumetest.Fault{Times: 1, Body: `{"terminal": true, "sume_status": "failed"}`})
	late := s.sandbox(t, config.APIBaseURL+"="+gate, "POLL_LEASE=3s", "SUME_REQUEST_TIMEOUT=2s")
	answer := late.begin(t, "")
	<-arrived
	if err := late.Freeze(); err != nil {
		t.Fatal(err)
	}
	close(open) // the answer reaches a process that is frozen
	s.read(t, 1)
	until(t, "the answer to be sent", func() bool { return s.api.Stats().InFlight == 0 })
	other := s.sandbox(t, "POLL_LEASE=3s", "SUME_REQUEST_TIMEOUT=2s", "POLL_BUDGET=30s").tick(t)
	if other.Finished["completed"] != 1 {
		t.Errorf("the other sandbox: %+v", other)
	}
	const row = `SELECT count(*) FROM video_jobs WHERE state = 'completed' AND polls = 1 AND consecutive_errors = 0 AND last_error IS NULL`
	if s.number(t, row) != 1 {
		t.Error("the row is not as the other one settled it")
	}
	if err := late.Thaw(); err != nil {
		t.Fatal(err)
	}
	if sum := answered(t, answer); sum.LostLeases != 1 || len(sum.Finished) > 0 || sum.Polled > 0 {
		t.Errorf("the late one: %+v, want a lost lease and nothing else", sum)
	}
	if s.number(t, row) != 1 {
		t.Error("the late answer changed the row")
	}
	once(t, heard(), 1)
}
