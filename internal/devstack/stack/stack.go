// Package stack is make run: the whole product on this machine, without AWS and
// without cost. The functions' own binaries run under AWS's runtime interface
// emulator against a real PostgreSQL; the Sume API and Secrets Manager are
// simulated; a tick comes every few seconds instead of every minute. A buyer
// buys jobs, and each of them must reach its expected state.
package stack

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"time"

	"golang.org/x/sync/errgroup"

	"sumepoller/internal/config"
	"sumepoller/internal/devstack"
	"sumepoller/internal/sume/sumetest"
)

const (
	tickEvery     = 3 * time.Second
	timeBudget    = 4 * time.Second // longer than a tick, so that runs overlap
	functionLimit = 30 * time.Second
	sandboxes     = 2 // of the poller
	secretID      = "sume-api-key"
	cleanupLimit  = 20 * time.Second
)

// Options say what to run.
type Options struct {
	Jobs   int           // at least 1
	Keep   bool          // go on after the report, until ctx ends
	Server string        // connection string of a PostgreSQL server; empty: start one
	Bound  time.Duration // from the first job bought to the last one finished
	Buying time.Duration // over which the jobs are bought, where they can be that fast
	Life   time.Duration // of a job at Sume, at most; a sixth of it at least
	Out    io.Writer
}

// Run returns nil when every job reached its expected state. When it returns,
// what it started has ended and what it made is removed.
func Run(ctx context.Context, o Options) error {
	s := &stack{Options: o, key: "sume_" + rand.Text()}
	defer s.close()
	if err := s.start(ctx); err != nil {
		return err
	}
	err := s.follow(ctx)
	if !o.Keep || ctx.Err() != nil {
		return err
	}
	return errors.Join(err, s.keep(ctx))
}

type stack struct {
	Options
	key     string // of the API
	api     *sumetest.API
	address string // of the API and of Secrets Manager
	db      *database
	built   map[string]string // binary by function
	pollers []*devstack.Function
	buyer   *buyer
	clock   *clock
	undo    []func() // last first
}

func (s *stack) close() {
	for i := len(s.undo) - 1; i >= 0; i-- {
		s.undo[i]()
	}
}

func (s *stack) say(format string, args ...any) { fmt.Fprintf(s.Out, format+"\n", args...) }

func (s *stack) onClose(f func()) { s.undo = append(s.undo, f) }

// start starts everything but the clock.
func (s *stack) start(ctx context.Context) error {
	s.say("building the functions and starting PostgreSQL")
	if err := s.prepare(ctx); err != nil {
		return err
	}
	if err := s.serveAPI(); err != nil {
		return err
	}
	migrated, err := s.migrate(ctx)
	if err != nil {
		return err
	}
	s.say("database %s, schema migrated: %s", s.db.name, migrated)
	s.clock = &clock{free: make(chan *devstack.Function, sandboxes)}
	s.onClose(s.clock.running.Wait) // its runs end when their functions are stopped
	for range sandboxes {
		f, err := s.function(ctx, "poller")
		if err != nil {
			return err
		}
		s.pollers = append(s.pollers, f)
		s.clock.free <- f
	}
	submit, err := s.function(ctx, "submit")
	if err != nil {
		return err
	}
	s.buyer = &buyer{function: submit, key: s.key, api: s.api, life: s.Life, ends: map[string]string{}}
	s.onClose(s.clock.stop)
	s.say("%d jobs, %d sandboxes of the poller, a tick every %s, time budget of a run %s", s.Jobs, sandboxes, tickEvery, timeBudget)
	s.say("the API's limits (120 reads a minute, 10000 a day) are lifted for this run")
	return nil
}

// prepare builds the functions and makes the database, at the same time.
func (s *stack) prepare(ctx context.Context) error {
	s.built = map[string]string{}
	group, ctx := errgroup.WithContext(ctx)
	group.Go(func() (err error) {
		s.db, err = newDatabase(ctx, s.Server)
		return err
	})
	group.Go(func() (err error) {
		for _, name := range []string{"poller", "submit", "migrate"} {
			if s.built[name], err = devstack.Bootstrap(ctx, name); err != nil {
				return err
			}
		}
		return nil
	})
	err := group.Wait()
	if s.db != nil {
		s.onClose(s.db.close)
	}
	return err
}

// serveAPI starts the simulated API, with Secrets Manager beside it.
func (s *stack) serveAPI() error {
	s.api = sumetest.New(apiOptions(s.key, 0, sumetest.Plan{}))
	secrets := sumetest.NewSecrets()
	secrets.Set(secretID, s.key, false)
	server, err := sumetest.Listen(sumetest.Handler(s.api, secrets))
	if err != nil {
		return fmt.Errorf("serve the simulated API: %w", err)
	}
	s.address = server.URL
	s.onClose(server.Close)
	return nil
}

// apiOptions returns the options of an API without limits. The next job that is
// bought goes as planned.
func apiOptions(key string, seed uint64, next sumetest.Plan) sumetest.Options {
	return sumetest.Options{
		Seed: seed, Keys: []string{key}, Bought: next,
		Latency: 20 * time.Millisecond, LatencyMax: 120 * time.Millisecond,
	}
}

// migrate runs the migrate function once.
func (s *stack) migrate(ctx context.Context) (string, error) {
	f, err := s.function(ctx, "migrate")
	if err != nil {
		return "", err
	}
	defer f.Stop()
	result, err := f.Invoke(ctx, []byte("{}"))
	if err != nil {
		return "", err
	}
	if result.Failure != nil {
		return "", fmt.Errorf("migrate: %w", result.Failure)
	}
	return string(result.Payload), nil
}

// function starts a sandbox of a function. It is stopped with the stack. The
// functions ignore the variables that they do not need.
func (s *stack) function(ctx context.Context, name string) (*devstack.Function, error) {
	env := map[string]string{
		config.APIKeySecretID: secretID,
		config.APIBaseURL:     s.address + "/v1",
		config.DatabaseURL:    s.db.url,
		config.PollBudget:     timeBudget.String(),
		config.ReadsPerMinute: "0",
		config.ReadsPerDay:    "0",
		config.FunctionMemory: "256",

		"AWS_REGION":                       "us-east-1",
		"AWS_ACCESS_KEY_ID":                "simulated",
		"AWS_SECRET_ACCESS_KEY":            "simulated",
		"AWS_EC2_METADATA_DISABLED":        "true",
		"AWS_ENDPOINT_URL_SECRETS_MANAGER": s.address,
	}
	f, err := devstack.StartFunction(ctx, "sumepoller-"+name, s.built[name], env, functionLimit)
	if err != nil {
		return nil, err
	}
	s.onClose(f.Stop)
	return f, nil
}
