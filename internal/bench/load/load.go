// Package load is the side of a benchmark that reads jobs: this program's
// loop, the held-lock loop it is compared with, and the bare reads with no
// database. Each runs in a process of its own, so that its memory and its
// share of the processors can be told, and limited.
package load

import (
	"context"
	"fmt"
	"log/slog"
	"runtime"
	"runtime/debug"
	"slices"
	"sync"
	"syscall"
	"time"

	"sumepoller/internal/config"
	"sumepoller/internal/poller"
	"sumepoller/internal/postgres"
	"sumepoller/internal/postgres/jobs"
	"sumepoller/internal/sume"
)

// Kinds of load.
const (
	Ours = "ours" // poller.Run over the store
	Held = "held" // one row a transaction, its lock held during the read
	Bare = "bare" // the same reads, of ids that are known, with no database
)

// Spec says what to read, and how.
type Spec struct {
	Kind        string        `json:"kind"`
	DatabaseURL string        `json:"database_url"`
	APIURL      string        `json:"api_url"`
	Concurrency int           `json:"concurrency"`
	Conns       int           `json:"conns"`      // connections to the database at most
	Jobs        int           `json:"jobs"`       // Held: rows to work off; Bare: jobs job_1 … to read
	Budget      time.Duration `json:"budget"`     // Ours: of the run
	MemoryMiB   int64         `json:"memory_mib"` // the function's; 0: no limit
	Watch       bool          `json:"watch"`      // Ours: compare each read's beginning with its due time
}

// Result is what came of it.
type Result struct {
	Reads   int           `json:"reads"`
	Began   time.Time     `json:"began"`
	Ended   time.Time     `json:"ended"`
	CPU     time.Duration `json:"cpu"`      // of this process, over the load alone
	PeakRSS int64         `json:"peak_rss"` // bytes
	Stopped string        `json:"stopped"`
	Early   int           `json:"early"` // reads before their due time, where watched
	Late    []float64     `json:"late"`  // seconds from the due time to the read's beginning, where watched
}

// Elapsed is how long the load lasted.
func (r Result) Elapsed() time.Duration { return r.Ended.Sub(r.Began) }

// Rate is the reads a second.
func (r Result) Rate() float64 { return float64(r.Reads) / r.Elapsed().Seconds() }

// timeout of one read, which no answer of the benchmark comes near.
const timeout = 15 * time.Second

// Run puts the load on.
func Run(ctx context.Context, s Spec) (Result, error) {
	if s.MemoryMiB > 0 {
		debug.SetMemoryLimit(s.MemoryMiB << 20 / 6 * 5) // as the function does
	}
	api, err := sume.NewClient(sume.Config{BaseURL: s.APIURL + "/v1", KeyHeader: "X-Api-Key: ", Timeout: timeout}, key{})
	if err != nil {
		return Result{}, err
	}
	defer api.CloseIdle()
	before := cpu()
	var r Result
	switch s.Kind {
	case Ours:
		r, err = ours(ctx, s, api)
	case Held:
		r, err = held(ctx, s, api)
	case Bare:
		r, err = bare(ctx, s, api)
	default:
		return r, fmt.Errorf("no load %q", s.Kind)
	}
	r.CPU, r.PeakRSS = cpu()-before, peak()
	return r, err
}

type key struct{}

func (key) Key(context.Context) (string, error) { return "bench", nil }

func (key) Renew(context.Context, string) (string, error) { return "bench", nil }

// ours is one run of the loop, as the function makes it: with the day's
// allowance counted, at a height that it never reaches.
func ours(ctx context.Context, s Spec, api poller.Reader) (Result, error) {
	began := time.Now()
	pool, err := postgres.Connect(ctx, config.Database{URL: s.DatabaseURL, MaxConns: s.Conns}, nil)
	if err != nil {
		return Result{}, err
	}
	defer pool.Close()
	p := poller.New(Settings(s), slog.New(slog.DiscardHandler))
	watched := &watch{Reader: api}
	if s.Watch {
		if err := watched.learn(ctx, pool); err != nil {
			return Result{}, err
		}
		api = watched
	}
	sum, err := p.Run(ctx, jobs.New(pool), api, time.Now(), poller.NewSummary("bench", poller.ModeScheduled))
	r := Result{Reads: sum.Reads, Began: began, Ended: time.Now(), Stopped: sum.Stopped, Late: watched.late, Early: watched.early}
	if err == nil && sum.LostLeases > 0 {
		err = fmt.Errorf("%d leases were lost: %s", sum.LostLeases, sum.JSON())
	}
	return r, err
}

// Settings are the function's defaults, with the spec's figures in place of
// those that the API's allowance would bind.
func Settings(s Spec) poller.Settings {
	return poller.Settings{
		Budget: s.Budget, Concurrency: s.Concurrency, Lease: 2 * timeout, RequestTimeout: timeout,
		DefaultInterval: 15 * time.Second, MinInterval: time.Second, MaxInterval: time.Hour,
		BackoffMax: 15 * time.Minute, ReadsPerDay: 1_000_000_000,
	}
}

// bare reads each job once, with as many reads in flight.
func bare(ctx context.Context, s Spec, api poller.Reader) (Result, error) {
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

// cpu is the processor time this process has used.
func cpu() time.Duration {
	var u syscall.Rusage
	if syscall.Getrusage(syscall.RUSAGE_SELF, &u) != nil {
		return 0
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// peak is the most memory this process has had, in bytes.
func peak() int64 {
	var u syscall.Rusage
	if syscall.Getrusage(syscall.RUSAGE_SELF, &u) != nil {
		return 0
	}
	if runtime.GOOS == "darwin" {
		return u.Maxrss
	}
	return u.Maxrss << 10
}

// Quantile returns the share's quantile; 0 of nothing.
func Quantile(values []float64, share float64) float64 {
	if len(values) == 0 {
		return 0
	}
	sorted := slices.Sorted(slices.Values(values))
	return sorted[min(len(sorted)-1, int(share*float64(len(sorted))))]
}
