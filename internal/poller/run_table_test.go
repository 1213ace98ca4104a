package poller_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"sumepoller/internal/poller"
)

// stubTable answers what a test sets, and has no rows where it sets nothing.
type stubTable struct {
	claim   func(poller.ClaimRequest) (poller.Claimed, error)
	settle  func([]poller.Settlement) ([]poller.Result, error)
	release func([]poller.Release) ([]poller.Result, error)
	nextDue func() (time.Duration, bool, error)
	today   func() (poller.Day, error)
	backlog func() (poller.Backlog, error)
}

func (s stubTable) Claim(_ context.Context, r poller.ClaimRequest) (poller.Claimed, error) {
	if s.claim == nil {
		return poller.Claimed{}, nil
	}
	return s.claim(r)
}

func (s stubTable) Settle(_ context.Context, batch []poller.Settlement) ([]poller.Result, error) {
	if s.settle == nil {
		return make([]poller.Result, len(batch)), nil
	}
	return s.settle(batch)
}

func (s stubTable) Release(_ context.Context, _ string, rows []poller.Release) ([]poller.Result, error) {
	if s.release == nil {
		return make([]poller.Result, len(rows)), nil
	}
	return s.release(rows)
}

func (s stubTable) NextDue(context.Context, []poller.LeaseID) (time.Duration, bool, error) {
	if s.nextDue == nil {
		return 0, false, nil
	}
	return s.nextDue()
}

func (s stubTable) Today(context.Context) (poller.Day, error) {
	if s.today == nil {
		return poller.Day{}, nil
	}
	return s.today()
}

func (s stubTable) Backlog(context.Context) (poller.Backlog, error) {
	if s.backlog == nil {
		return poller.Backlog{}, nil
	}
	return s.backlog()
}

func TestRun_EndedBy(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		due := stubTable{nextDue: func() (time.Duration, bool, error) { return 0, true, nil }}
		for want, end := range map[string]func() (context.Context, context.CancelFunc){
			poller.StoppedBudget: func() (context.Context, context.CancelFunc) {
				return context.WithTimeout(context.Background(), 0)
			},
			poller.StoppedCanceled: func() (context.Context, context.CancelFunc) {
				ctx, cancel := context.WithCancel(context.Background())
				time.AfterFunc(time.Second, cancel)
				return ctx, cancel
			},
		} {
			ctx, cancel := end()
			began := time.Now()
			sum, err := poller.New(defaults(), quiet()).Run(ctx, &boundedTable{Table: due}, nil, began, poller.NewSummary("run_1", poller.ModeScheduled))
			cancel()
			if err != nil || sum.Stopped != want || time.Since(began) > time.Second {
				t.Errorf("stopped %q with %v, want %q", sum.Stopped, err, want)
			}
		}
	})
}

func TestRun_DatabaseErrors(t *testing.T) {
	lost := errors.New("connection lost")
	one := func(poller.ClaimRequest) (poller.Claimed, error) {
		return poller.Claimed{Jobs: []poller.Job{{ID: "job_1"}}, Day: poller.Day{Reads: 1}}, nil
	}
	for name, table := range map[string]stubTable{
		"day":     {today: func() (poller.Day, error) { return poller.Day{}, lost }},
		"claim":   {claim: func(poller.ClaimRequest) (poller.Claimed, error) { return poller.Claimed{}, lost }},
		"look":    {nextDue: func() (time.Duration, bool, error) { return 0, false, lost }},
		"settle":  {claim: one, settle: func([]poller.Settlement) ([]poller.Result, error) { return nil, lost }},
		"release": {claim: one, release: func([]poller.Release) ([]poller.Result, error) { return nil, lost }},
		"backlog": {backlog: func() (poller.Backlog, error) { return poller.Backlog{}, lost }},
		"pending jobs": {
			today: func() (poller.Day, error) { return poller.Day{Reads: 199}, nil },
			claim: func(poller.ClaimRequest) (poller.Claimed, error) {
				return poller.Claimed{Day: poller.Day{Reads: 200}}, nil
			},
			backlog: func() (poller.Backlog, error) { return poller.Backlog{}, lost },
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				api := reader(func(context.Context, string) (poller.Answer, error) {
					if table.release != nil {
						return poller.Answer{}, &poller.ReadError{Class: poller.RateLimited, RetryAfter: time.Minute}
					}
					return poller.Answer{Terminal: true, Status: "completed"}, nil
				})
				s := defaults()
				s.ReadsPerDay = 1000
				sum, err := pass(t, poller.New(s, quiet()), table, api, 90*time.Second)
				var failed *poller.RunError
				if !errors.As(err, &failed) || failed.Kind != poller.KindDatabase || !errors.Is(err, lost) {
					t.Errorf("got %v, want the database's error", err)
				}
				if sum.Stopped != poller.StoppedCanceled && name != "backlog" {
					t.Errorf("stopped %q, want canceled", sum.Stopped)
				}
			})
		})
	}
}

func TestRun_BacklogAfterError(t *testing.T) {
	one := poller.Claimed{Jobs: []poller.Job{{ID: "job_1"}}}
	for name, c := range map[string]struct {
		err  error // of the claim
		want int   // backlogs counted
	}{
		"the database's": {errors.New("connection lost"), 0},
		"the key's":      {nil, 1},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				counted := 0
				table := stubTable{
					claim:   func(poller.ClaimRequest) (poller.Claimed, error) { return one, c.err },
					backlog: func() (poller.Backlog, error) { counted++; return poller.Backlog{}, nil },
				}
				api := reader(func(context.Context, string) (poller.Answer, error) {
					return poller.Answer{}, &poller.ReadError{Class: poller.Unauthorized, HTTPStatus: 401}
				})
				if _, err := pass(t, poller.New(defaults(), quiet()), table, api, 90*time.Second); err == nil || counted != c.want {
					t.Errorf("got %v and %d backlogs counted, want an error and %d", err, counted, c.want)
				}
			})
		})
	}
}

func TestRun_CountsPendingOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		counted, claims := 0, 0
		table := stubTable{
			today: func() (poller.Day, error) { return poller.Day{Reads: 9_666_600, Elapsed: 23 * time.Hour}, nil },
			claim: func(poller.ClaimRequest) (poller.Claimed, error) {
				claims++
				return poller.Claimed{Jobs: []poller.Job{{ID: "job_1"}}, Day: poller.Day{Reads: 9_666_666, Elapsed: 23 * time.Hour}}, nil
			},
			backlog: func() (poller.Backlog, error) { counted++; return poller.Backlog{Pending: 3, Due: 1}, nil },
		}
		api := reader(func(context.Context, string) (poller.Answer, error) { return poller.Answer{NextPoll: time.Second}, nil })
		s := defaults()
		s.Budget, s.Concurrency, s.ReadsPerDay = 5*time.Second, 1, 10_000_000 // the pace line rises fast
		if _, err := pass(t, poller.New(s, quiet()), table, api, 90*time.Second); err != nil {
			t.Fatal(err)
		}
		if counted != 2 || claims < 2 {
			t.Errorf("pending jobs counted %d times in %d claims, want once and at the end", counted, claims)
		}
	})
}

func TestRun_DrainedWithDueRows(t *testing.T) {
	for due, want := range map[int]string{0: poller.StoppedDrained, 1: poller.StoppedBudget} {
		synctest.Test(t, func(t *testing.T) {
			table := stubTable{backlog: func() (poller.Backlog, error) { return poller.Backlog{Due: due}, nil }}
			sum, err := pass(t, poller.New(defaults(), quiet()), table, nil, 90*time.Second)
			if err != nil || sum.Stopped != want {
				t.Errorf("%d due: stopped %q with %v, want %q", due, sum.Stopped, err, want)
			}
		})
	}
}
