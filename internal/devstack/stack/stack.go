// Package stack is make run: the whole product on this machine, with nothing
// of AWS's and nothing that costs. The functions' own binaries run under AWS's
// runtime interface emulator against a real PostgreSQL; the Sume API and
// Secrets Manager are simulated; a clock ticks every few seconds in place of
// a minute. A buyer buys jobs, and every one of them has to reach its end.
package stack

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"time"

	"sumepoller/internal/devstack"
	"sumepoller/internal/sume/sumetest"
)

const (
	tickEvery     = 3 * time.Second
	runBudget     = 4 * time.Second // longer than a tick, so that runs overlap
	functionLimit = 30 * time.Second
	sandboxes     = 2 // of the poller
	secretID      = "sume-api-key"
	cleanupLimit  = 20 * time.Second
)

// Options say what to run.
type Options struct {
	Jobs     int           // at least 1
	Keep     bool          // go on after the report, until ctx ends
	Server   string        // connection string of a PostgreSQL server; empty: start one
	Bound    time.Duration // from the first job bought to the last one finished
	Buying   time.Duration // over which the jobs are bought, where they can be that fast
	Life     time.Duration // of a job at Sume, at most; a sixth of it at least
	Out      io.Writer
	Terminal bool // Out understands a line that is written over
}

// Run runs it and returns nil when every job reached its right end. When it
// returns, what it started has ended and what it made is removed.
func Run(ctx context.Context, o Options) error {
	s := &stack{Options: o, screen: &screen{out: o.Out, terminal: o.Terminal}, key: "sume_" + rand.Text()}
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

// stack is what runs.
type stack struct {
	Options
	screen  *screen
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

func (s *stack) onClose(f func()) { s.undo = append(s.undo, f) }

// start brings everything up to the moment before the first job.
func (s *stack) start(ctx context.Context) error {
	s.screen.say("building the functions and starting PostgreSQL")
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
	s.screen.say("database %s, schema migrated: %s", s.db.name, migrated)
	for range sandboxes {
		f, err := s.function(ctx, "poller", nil)
		if err != nil {
			return err
		}
		s.pollers = append(s.pollers, f)
	}
	if s.buyer, err = s.newBuyer(ctx); err != nil {
		return err
	}
	s.clock = newClock(s.pollers)
	s.onClose(s.clock.stop)
	s.screen.say("%d jobs, %d sandboxes of the poller, a tick every %s, %s a run", s.Jobs, sandboxes, tickEvery, runBudget)
	s.screen.say("the API's limits (120 reads a minute, 10000 a day) are lifted for this run")
	return nil
}

// prepare builds the functions and makes the database, at the same time.
func (s *stack) prepare(ctx context.Context) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	made := make(chan error, 1)
	go func() {
		var err error
		s.db, err = newDatabase(ctx, s.Server)
		made <- err
	}()
	s.built = map[string]string{}
	var buildErr error
	for _, name := range []string{"poller", "submit", "migrate"} {
		if s.built[name], buildErr = devstack.Bootstrap(ctx, name); buildErr != nil {
			cancel()
			break
		}
	}
	err := <-made
	if s.db != nil {
		s.onClose(s.db.close)
	}
	if buildErr != nil {
		return buildErr
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

// apiOptions are those of an API that sets no limits; the next job bought goes
// as planned.
func apiOptions(key string, seed uint64, next sumetest.Plan) sumetest.Options {
	return sumetest.Options{
		Seed: seed, Keys: []string{key}, Bought: next,
		Latency: 20 * time.Millisecond, LatencyMax: 120 * time.Millisecond,
	}
}

// migrate runs the migrating function once.
func (s *stack) migrate(ctx context.Context) (string, error) {
	f, err := s.function(ctx, "migrate", nil)
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

// function starts a sandbox of a function, stopped with the stack.
func (s *stack) function(ctx context.Context, name string, extra map[string]string) (*devstack.Function, error) {
	f, err := devstack.StartFunction(ctx, "sumepoller-"+name, s.built[name], s.environment(extra), functionLimit)
	if err != nil {
		return nil, err
	}
	s.onClose(f.Stop)
	return f, nil
}
