// Package load reads jobs from an API in one of three ways, which the benchmark
// compares: the poller, a held-lock loop, and reads without a database.
package load

import (
	"context"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"sumepoller/internal/config"
	"sumepoller/internal/poller"
	"sumepoller/internal/postgres"
	"sumepoller/internal/postgres/jobs"
	"sumepoller/internal/sume"
)

// Kinds of load.
const (
	Poller     = "poller"         // poller.Run on PostgreSQL
	HeldLock   = "held-lock loop" // one row a transaction, its lock held during the read
	NoDatabase = "no database"    // the same reads, of known ids
)

// conns is the function's default number of connections.
const conns = 4

// Spec is what to read, and how.
type Spec struct {
	Kind        string        `json:"kind"`
	DatabaseURL string        `json:"database_url"`
	APIURL      string        `json:"api_url"`
	Concurrency int           `json:"concurrency"` // reads in flight
	Jobs        int           `json:"jobs"`        // HeldLock, NoDatabase: how many to read
	Budget      time.Duration `json:"budget"`      // Poller: the time budget
}

// Result is what a load did.
type Result struct {
	Reads   int       `json:"reads"`
	Began   time.Time `json:"began"`
	Ended   time.Time `json:"ended"`
	Stopped string    `json:"stopped"` // Poller: why the run ended
}

// Rate returns the reads a second.
func (r Result) Rate() float64 { return float64(r.Reads) / r.Ended.Sub(r.Began).Seconds() }

// timeout of one read. No answer of the benchmark takes as long.
const timeout = 15 * time.Second

// Run runs a load.
func Run(ctx context.Context, s Spec) (Result, error) {
	api, err := sume.NewClient(sume.Config{BaseURL: s.APIURL + "/v1", KeyHeader: "X-Api-Key: ", Timeout: timeout}, key{})
	if err != nil {
		return Result{}, err
	}
	defer api.CloseIdle()
	switch s.Kind {
	case Poller:
		return runPoller(ctx, s, api)
	case HeldLock:
		return runHeldLock(ctx, s, api)
	case NoDatabase:
		return runNoDatabase(ctx, s, api)
	}
	return Result{}, fmt.Errorf("no load %q", s.Kind)
}

type key struct{}

func (key) Key(context.Context) (string, error) { return "bench", nil }

func (key) Renew(context.Context, string) (string, error) { return "bench", nil }

// runPoller is one run of the poller as the function makes it. The daily limit
// is counted, but is never reached.
func runPoller(ctx context.Context, s Spec, api poller.Reader) (Result, error) {
	began := time.Now()
	pool, err := postgres.Connect(ctx, config.Database{URL: s.DatabaseURL, MaxConns: conns}, nil)
	if err != nil {
		return Result{}, err
	}
	defer pool.Close()
	p := poller.New(Settings(s), slog.New(slog.DiscardHandler))
	sum, err := p.Run(ctx, jobs.New(pool), api, time.Now(), poller.NewSummary("bench", poller.ModeScheduled))
	r := Result{Reads: sum.Reads, Began: began, Ended: time.Now(), Stopped: sum.Stopped}
	if err == nil && sum.LostLeases > 0 {
		err = fmt.Errorf("%d leases were lost: %s", sum.LostLeases, sum.JSON())
	}
	return r, err
}

// Settings are the function's defaults, without its limits on reads.
func Settings(s Spec) poller.Settings {
	return poller.Settings{
		Budget: s.Budget, Concurrency: s.Concurrency, Lease: 2 * timeout, RequestTimeout: timeout,
		DefaultInterval: 15 * time.Second, MinInterval: time.Second, MaxInterval: time.Hour,
		BackoffMax: 15 * time.Minute, ReadsPerDay: 1_000_000_000,
	}
}

// runNoDatabase reads job_1 to job_n once each.
func runNoDatabase(ctx context.Context, s Spec, api poller.Reader) (Result, error) {
	ids := make(chan string, s.Jobs)
	for i := range s.Jobs {
		ids <- fmt.Sprintf("job_%d", i+1)
	}
	close(ids)
	r := Result{Reads: s.Jobs, Began: time.Now()}
	var wait sync.WaitGroup
	failed := make(chan error, s.Concurrency)
	for range s.Concurrency {
		wait.Go(func() {
			for id := range ids {
				if _, err := api.Status(ctx, id); err != nil {
					failed <- err
					return
				}
			}
		})
	}
	wait.Wait()
	r.Ended = time.Now()
	select {
	case err := <-failed:
		return r, err
	default:
		return r, nil
	}
}
