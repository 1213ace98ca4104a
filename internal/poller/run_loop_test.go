package poller_test

import (
	"context"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"sumepoller/internal/poller"
)

func errorAnswer(status int) (poller.Answer, error, bool) {
	class := poller.HTTP4xx
	if status >= 500 {
		class = poller.HTTP5xx
	}
	return poller.Answer{}, &poller.ReadError{Class: class, HTTPStatus: status, RetryAfter: -1, JSON: true}, true
}

func TestRun_ShortJobs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		table := newTable()
		api := &fakeAPI{Latency: 50 * time.Millisecond, Hint: time.Second}
		for i := range 62 {
			id := fmt.Sprintf("job_%02d", i)
			table.Add(id, 0)
			api.Start(id, time.Now())
			if i < 10 {
				api.Answer = func(id string, n int) (poller.Answer, error, bool) {
					return poller.Answer{Status: "processing", NextPoll: time.Second}, nil, id < "job_10" && n <= 2
				}
			}
		}
		s := defaults()
		s.Budget = 12 * time.Second
		sum := mustPass(t, poller.New(s, quiet()), table, api)
		got := []any{sum.Finished, sum.Rescheduled, len(api.Reads), sum.Stopped, sum.Polled}
		want := []any{map[string]int{"completed": 62}, 20, 82, poller.StoppedDrained, 82}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("-want +got:\n%s", diff)
		}
		if api.Twice != 0 {
			t.Errorf("jobs read twice at once: %d", api.Twice)
		}
	})
}

func TestRun_NothingDue(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		table := newTable()
		table.Add("job_1", time.Hour)
		sum := mustPass(t, poller.New(defaults(), quiet()), table, &fakeAPI{})
		if sum.Stopped != poller.StoppedDrained || sum.ElapsedSeconds > 0.1 {
			t.Errorf("got %s after %g s, want drained at once", sum.Stopped, sum.ElapsedSeconds)
		}
	})
}

func TestRun_APIMinuteLimit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		table := newTable()
		api := &fakeAPI{Latency: 50 * time.Millisecond, PerMinute: 120}
		for i := range 400 {
			id := fmt.Sprintf("job_%03d", i)
			table.Add(id, 0)
			api.Start(id, time.Now())
		}
		s := defaults()
		s.Budget = 20 * time.Second
		p := poller.New(s, quiet())
		sum := mustPass(t, p, table, api)
		if len(api.Reads) != 120 || api.Refused > 2 || sum.Stopped != poller.StoppedRateLimited {
			t.Errorf("got %d reads, %d refused, %s; want 120 reads and rate_limited", len(api.Reads), api.Refused, sum.Stopped)
		}
		before := len(api.Reads) + api.Refused
		mustPass(t, p, table, api)
		if again := len(api.Reads) + api.Refused - before; again > 2 {
			t.Errorf("the next run in the same minute made %d reads, want at most 2", again)
		}
		for _, row := range table.Rows() {
			if row.ConsecutiveErrors != 0 || row.State == poller.StatePending && !row.LeasedUntil.IsZero() {
				t.Fatalf("%s has an error or a lease: %+v", row.ID, row)
			}
		}
	})
}

func TestRun_SandboxMinuteLimit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		table := newTable()
		api := &fakeAPI{Latency: 900 * time.Millisecond}
		for i := range 400 {
			id := fmt.Sprintf("job_%03d", i)
			table.Add(id, 0)
			api.Start(id, time.Now())
		}
		s := defaults()
		s.ReadsPerMinute = 60
		p := poller.New(s, quiet())
		ticks(t, p, table, api, time.Minute, 4)
		for i := range api.Reads {
			if j := i + 60; j < len(api.Reads) && api.Reads[j].At.Sub(api.Reads[i].At) < time.Minute {
				t.Fatalf("reads %d and %d lie %v apart", i, j, api.Reads[j].At.Sub(api.Reads[i].At))
			}
		}
		if len(api.Reads) < 200 {
			t.Errorf("only %d reads in four minutes", len(api.Reads))
		}
	})
}

func TestRun_DeadlineReleasesUnread(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		table := newTable()
		api := slow{3 * time.Second}
		for i := range 500 {
			table.Add(fmt.Sprintf("job_%03d", i), 0)
		}
		began := time.Now()
		sum, err := pass(t, poller.New(defaults(), quiet()), table, api, 10*time.Second)
		if err != nil || time.Since(began) > 9900*time.Millisecond {
			t.Errorf("got %v after %v", err, time.Since(began))
		}
		if sum.Finished["completed"] < 60 || sum.Stopped != poller.StoppedBudget {
			t.Errorf("got %s, want at least 60 completed", sum.JSON())
		}
		for _, row := range table.Rows() {
			if row.State == poller.StatePending && (row.ConsecutiveErrors != 0 || !row.LeasedUntil.IsZero()) {
				t.Fatalf("%s has an error or a lease: %+v", row.ID, row)
			}
		}
	})
}

func TestSettle_LockedToTheEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		table := newTable()
		table.Add("job_1", 0)
		table.Add("job_2", 0)
		locked := lockingTable{fakeTable: table, id: "job_2"}
		sum, err := pass(t, poller.New(defaults(), quiet()), locked, slow{6 * time.Second}, 10*time.Second)
		if err != nil || sum.Finished["completed"] != 1 || sum.LostLeases != 1 || sum.Backlog.Pending != 1 {
			t.Errorf("got %v, %s; want one completed, one lost and one counted as pending", err, sum.JSON())
		}
	})
}

// lockingTable is a table in which another program holds one row.
type lockingTable struct {
	*fakeTable
	id string
}

func (h lockingTable) Settle(ctx context.Context, batch []poller.Settlement) ([]poller.Result, error) {
	out := make([]poller.Result, len(batch))
	for i, s := range batch {
		if s.JobID != h.id {
			one, err := h.fakeTable.Settle(ctx, batch[i:i+1])
			if err != nil {
				return out[:i], err
			}
			out[i] = one[0]
			continue
		}
		out[i].Outcome = poller.Locked
		wait := time.NewTimer(310 * time.Millisecond) // for the row's lock
		defer wait.Stop()
		select {
		case <-wait.C:
		case <-ctx.Done():
			return out[:i], ctx.Err()
		}
	}
	return out, nil
}

// slow answers every job as completed after a while.
type slow struct{ takes time.Duration }

func (s slow) Status(ctx context.Context, _ string) (poller.Answer, error) {
	timer := time.NewTimer(s.takes)
	defer timer.Stop()
	select {
	case <-timer.C:
		return poller.Answer{Terminal: true, Status: "completed", Body: []byte(`{}`)}, nil
	case <-ctx.Done():
		return poller.Answer{}, ctx.Err()
	}
}

func TestRun_MinuteLimitUsedUp(t *testing.T) {
	for name, test := range map[string]struct {
		jobs    int
		stopped string
		elapsed time.Duration // at least, and at most a second more
	}{
		"nothing more is due": {jobs: 10, stopped: poller.StoppedDrained},
		"one more is due":     {jobs: 11, stopped: poller.StoppedDrained, elapsed: time.Minute},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				table := newTable()
				api := &fakeAPI{Latency: 50 * time.Millisecond}
				for i := range test.jobs {
					id := fmt.Sprintf("job_%02d", i)
					table.Add(id, 0)
					api.Start(id, time.Now())
				}
				s := defaults()
				s.ReadsPerMinute, s.Budget = 10, 80*time.Second
				sum := mustPass(t, poller.New(s, quiet()), table, api)
				took := time.Duration(sum.ElapsedSeconds * float64(time.Second))
				if sum.Polled != test.jobs || sum.Stopped != test.stopped || took < test.elapsed || took > test.elapsed+time.Second {
					t.Errorf("summary %+v", sum)
				}
			})
		})
	}
}
