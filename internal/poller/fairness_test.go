package poller_test

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"sumepoller/internal/poller"
)

// crowd is a table of odd rows at the head and good ones behind, with an API
// that answers for the odd ones what answer returns, and for the good ones completed.
func crowd(odd, good int, answer func(id string) (poller.Answer, error)) (*fakeTable, *fakeAPI) {
	table := newTable()
	api := &fakeAPI{Latency: 20 * time.Millisecond}
	for i := range odd {
		table.Add(fmt.Sprintf("a_odd_%03d", i), time.Duration(i-2000)*time.Second)
	}
	for i := range good {
		id := fmt.Sprintf("good_%03d", i)
		table.Add(id, time.Duration(i-1000)*time.Second)
		api.Start(id, time.Now())
	}
	api.Answer = func(id string, _ int) (poller.Answer, error, bool) {
		if strings.HasPrefix(id, "good") {
			return poller.Answer{}, nil, false
		}
		a, err := answer(id)
		return a, err, true
	}
	return table, api
}

func TestFairness_RowsGivenBack(t *testing.T) {
	t.Parallel()
	readError := func(class poller.Class, status int) error {
		return &poller.ReadError{Class: class, HTTPStatus: status, RetryAfter: -1, JSON: true}
	}
	for name, c := range map[string]struct {
		odd, concurrency, runs int
		answer                 func(id string) error
	}{
		"40 of 403, 8 in flight":   {40, 8, 6, func(string) error { return readError(poller.HTTP4xx, 403) }},
		"100 of 403, 64 in flight": {100, 64, 4, func(string) error { return readError(poller.HTTP4xx, 403) }},
		"one of 429":               {1, 8, 3, func(string) error { return readError(poller.RateLimited, 429) }},
		"one of 401":               {1, 8, 3, func(string) error { return readError(poller.Unauthorized, 401) }},
		"all three": {102, 64, 12, func(id string) error {
			switch id {
			case "a_odd_000":
				return readError(poller.RateLimited, 429)
			case "a_odd_001":
				return readError(poller.Unauthorized, 401)
			}
			return readError(poller.HTTP4xx, 403)
		}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				table, api := crowd(c.odd, 50, func(id string) (poller.Answer, error) { return poller.Answer{}, c.answer(id) })
				s := defaults()
				s.Concurrency, s.Budget = c.concurrency, 5*time.Second
				p := poller.New(s, quiet())
				finished := 0
				for range c.runs {
					sum, _ := pass(t, p, table, api, time.Minute)
					finished += sum.Finished["completed"]
					time.Sleep(time.Minute)
				}
				if finished != 50 {
					t.Errorf("%d of 50 good jobs finished in %d runs", finished, c.runs)
				}
				for _, row := range table.Rows() {
					if !row.LeasedUntil.IsZero() {
						t.Fatalf("%s is still leased", row.ID)
					}
				}
			})
		})
	}
}

func TestFairness_401OfOneRow(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		table, api := crowd(1, 5, func(string) (poller.Answer, error) {
			return poller.Answer{}, &poller.ReadError{Class: poller.Unauthorized, HTTPStatus: 401, RetryAfter: -1, JSON: true}
		})
		s := defaults()
		s.Budget = 5 * time.Second
		p := poller.New(s, quiet())
		sum, err := pass(t, p, table, api, time.Minute)
		if row := table.Rows()[0]; err == nil || row.ConsecutiveErrors != 0 || row.Polls != 0 {
			t.Fatalf("key not accepted: got error %v, row %+v; want an error and no error of the row", err, row)
		}
		sum = mustPass(t, p, table, api)
		if row := table.Rows()[0]; row.ConsecutiveErrors != 1 || row.Polls != 1 || sum.Errors[poller.Unauthorized] != 1 {
			t.Errorf("key accepted: got row %+v and %s; want one error of the row", row, sum.JSON())
		}
	})
}

func TestFairness_SlowRowsAtTheHead(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		table := newTable()
		for i := range 40 {
			table.Add(fmt.Sprintf("slow_%03d", i), -time.Hour)
		}
		for i := range 3000 {
			table.Add(fmt.Sprintf("x_fast_%04d", i), -time.Minute)
		}
		s := defaults()
		s.Budget = 8 * time.Second
		sum := mustPass(t, poller.New(s, quiet()), table, slowAtHead{})
		if sum.Finished["completed"] < 100 {
			t.Errorf("%d jobs finished in 8 s behind 40 slow ones, want at least 100", sum.Finished["completed"]-40)
		}
	})
}

// slowAtHead takes 14.9 s for the slow rows and 50 ms for the rest.
type slowAtHead struct{}

func (slowAtHead) Status(ctx context.Context, id string) (poller.Answer, error) {
	takes := 50 * time.Millisecond
	if strings.HasPrefix(id, "slow") {
		takes = 14900 * time.Millisecond
	}
	return slow{takes}.Status(ctx, id)
}

// lateClaims delivers claims after a while.
type lateClaims struct {
	*fakeTable
	wait time.Duration
}

func (l lateClaims) Claim(ctx context.Context, r poller.ClaimRequest) (poller.Claimed, error) {
	got, err := l.fakeTable.Claim(ctx, r)
	time.Sleep(l.wait)
	return got, err
}

func TestRead_429DuringClaim(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		table := newTable()
		for i := range 200 {
			table.Add(fmt.Sprintf("job_%03d", i), -time.Hour)
		}
		var reads, after atomic.Int32
		var refused atomic.Bool
		api := reader(func(context.Context, string) (poller.Answer, error) {
			n := reads.Add(1)
			if refused.Load() {
				after.Add(1)
			}
			time.Sleep(10 * time.Millisecond)
			if n < 30 {
				return poller.Answer{Status: "processing", NextPoll: time.Hour}, nil
			}
			refused.Store(true)
			return poller.Answer{}, &poller.ReadError{Class: poller.RateLimited, HTTPStatus: 429, RetryAfter: time.Hour, JSON: true}
		})
		s := defaults()
		s.Concurrency, s.Budget = 16, 10*time.Second
		sum := mustPass(t, poller.New(s, quiet()), lateClaims{table, 20 * time.Millisecond}, api)
		if n := after.Load(); n != 0 || sum.Stopped != poller.StoppedRateLimited {
			t.Errorf("%d reads after the refusal, run ended as %s; want none and rate_limited", n, sum.Stopped)
		}
		for _, row := range table.Rows() {
			if !row.LeasedUntil.IsZero() || row.ConsecutiveErrors != 0 {
				t.Fatalf("%s has a lease or an error: %+v", row.ID, row)
			}
		}
	})
}

type reader func(ctx context.Context, id string) (poller.Answer, error)

func (f reader) Status(ctx context.Context, id string) (poller.Answer, error) { return f(ctx, id) }

// refusingTable is a table that refuses to finish one row, and to record its error
// as well where both is set.
type refusingTable struct {
	*fakeTable
	id   string
	both bool
}

func (d refusingTable) Settle(ctx context.Context, batch []poller.Settlement) ([]poller.Result, error) {
	out := make([]poller.Result, 0, len(batch))
	for _, s := range batch {
		if s.JobID == d.id && (s.State != "" || d.both) {
			out = append(out, poller.Result{Outcome: poller.Refused, Error: &poller.WriteError{
				JobID: s.JobID, SQLState: "23514", Object: "state_check", Write: poller.WriteSettle,
			}})
			continue
		}
		one, err := d.fakeTable.Settle(ctx, []poller.Settlement{s})
		if err != nil {
			return out, err
		}
		out = append(out, one...)
	}
	return out, nil
}

func TestSettle_RefusedByTable(t *testing.T) {
	t.Parallel()
	for name, both := range map[string]bool{"the finish": false, "the error too": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				table, api := crowd(0, 20, nil)
				var log bytes.Buffer
				s := defaults()
				s.Budget = 5 * time.Second
				p := poller.New(s, slog.New(slog.NewJSONHandler(&log, nil)))
				sum := mustPass(t, p, refusingTable{table, "good_007", both}, api)
				if sum.Finished["completed"] != 19 || sum.Errors[poller.WriteRefused] != 1 || sum.LostLeases != 0 {
					t.Errorf("got %s, want 19 completed, one refused and no lost lease", sum.JSON())
				}
				row := table.Rows()[7]
				if recorded := row.ConsecutiveErrors == 1 && row.LastError == "refused settle SQLSTATE 23514 state_check"; recorded == both {
					t.Errorf("row %+v", row)
				}
				if warning := log.String(); !strings.Contains(warning, `"job_id":"good_007"`) || !strings.Contains(warning, `"sqlstate":"23514"`) {
					t.Errorf("log %s, want a warning that names the row", warning)
				}
			})
		})
	}
}

// unclaimableTable is a table whose looks show a due row that no claim gets.
type unclaimableTable struct{ *fakeTable }

func (u unclaimableTable) Claim(ctx context.Context, r poller.ClaimRequest) (poller.Claimed, error) {
	got, err := u.fakeTable.Claim(ctx, poller.ClaimRequest{Lease: r.Lease, For: r.For, PaceLine: r.PaceLine})
	return got, err
}

func TestRun_DueAndNotClaimable(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		table := newTable()
		table.Add("job_1", -time.Minute)
		s := defaults()
		s.Budget = 5 * time.Second
		began := time.Now()
		sum := mustPass(t, poller.New(s, quiet()), unclaimableTable{table}, &fakeAPI{})
		if took := time.Since(began); sum.Stopped != poller.StoppedBudget || sum.DueRemaining != 1 || took != s.Budget {
			t.Errorf("got %s after %v with %d due, want budget after %v with 1", sum.Stopped, took, sum.DueRemaining, s.Budget)
		}
	})
}

func TestRead_CachedAnswers(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		age, hint time.Duration
		want      int
	}{
		"older than the hint":      {21 * time.Second, 20 * time.Second, 1},
		"as old as the hint":       {20 * time.Second, 20 * time.Second, 0},
		"older than the default":   {16 * time.Second, 0, 1},
		"younger than the default": {14 * time.Second, 0, 0},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				table, _ := crowd(0, 5, nil)
				var log bytes.Buffer
				s := defaults()
				s.Budget = 5 * time.Second
				p := poller.New(s, slog.New(slog.NewJSONHandler(&log, nil)))
				mustPass(t, p, table, reader(func(context.Context, string) (poller.Answer, error) {
					return poller.Answer{Status: "processing", NextPoll: c.hint, Age: c.age}, nil
				}))
				if n := strings.Count(log.String(), `"age_seconds"`); n != c.want {
					t.Errorf("%d warnings, want %d: %s", n, c.want, &log)
				}
			})
		})
	}
}
