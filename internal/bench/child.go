package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"runtime/pprof"
	"strings"
	"syscall"
	"time"

	"sumepoller/internal/bench/cgroup"
	"sumepoller/internal/bench/load"
	"sumepoller/internal/bench/simulation"
	"sumepoller/internal/devstack/process"
	"sumepoller/internal/sume/sumetest"
)

// Roles that this program plays in processes of its own.
const (
	roleAPI   = "api"   // the simulated Sume API
	roleLoad  = "load"  // what reads from it
	roleScene = "scene" // days in simulated time
)

// grace is what an interrupted child gets.
const grace = 3 * time.Second

// play plays a role: what to do comes as JSON on standard input, what came of
// it goes to standard output.
func play(ctx context.Context, role string) error {
	switch role {
	case roleAPI:
		return serve(ctx)
	case roleLoad:
		return putLoad(ctx)
	case roleScene:
		var scenes []simulation.Scene
		if err := json.NewDecoder(os.Stdin).Decode(&scenes); err != nil {
			return err
		}
		simulation.Main(scenes, os.Stdout) // ends the process
	}
	return fmt.Errorf("no role %q", role)
}

// serve serves the API until it is stopped, which happens with the parent.
func serve(ctx context.Context) error {
	s, err := sumetest.Listen(sumetest.Handler(sumetest.New(sumetest.Options{}), sumetest.NewSecrets()))
	if err != nil {
		return err
	}
	defer s.Close()
	if err := json.NewEncoder(os.Stdout).Encode(s.URL); err != nil {
		return err
	}
	<-ctx.Done()
	return nil
}

func putLoad(ctx context.Context) error {
	var s load.Spec
	if err := json.NewDecoder(os.Stdin).Decode(&s); err != nil {
		return err
	}
	if path := os.Getenv("BENCH_CPUPROFILE"); path != "" {
		f, err := os.Create(fmt.Sprintf("%s.%s.%d.%d", path, s.Kind, s.Concurrency, s.Jobs))
		if err != nil {
			return err
		}
		defer f.Close()
		if err := pprof.StartCPUProfile(f); err != nil {
			return err
		}
		defer pprof.StopCPUProfile()
	}
	r, err := load.Run(ctx, s)
	if err != nil {
		return err
	}
	return json.NewEncoder(os.Stdout).Encode(r)
}

// child is a process of a role.
type child struct {
	process *process.Process
	in      *os.File // its standard input
	out     *json.Decoder
	errors  *bytes.Buffer
	role    string
}

// spawn starts a child, in the group where there is one. It does nothing until
// it is told what.
func spawn(role string, group *cgroup.Group) (*child, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	inRead, inWrite, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	outRead, outWrite, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	c := &child{in: inWrite, out: json.NewDecoder(outRead), errors: &bytes.Buffer{}, role: role}
	cmd := exec.Command(self, role)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = inRead, outWrite, c.errors
	c.process, err = process.Start(cmd, syscall.SIGKILL)
	inRead.Close()
	outWrite.Close()
	if err != nil {
		return nil, err
	}
	if group != nil {
		if err := group.Add(c.process.PID()); err != nil {
			c.stop()
			return nil, err
		}
	}
	return c, nil
}

// tell says what to do.
func (c *child) tell(what any) error { return json.NewEncoder(c.in).Encode(what) }

// hear waits for what came of it.
func (c *child) hear(what any) error {
	err := c.out.Decode(what)
	if err != nil {
		c.stop()
		return fmt.Errorf("%s: %w: %s", c.role, err, strings.TrimSpace(c.errors.String()))
	}
	return nil
}

// interrupt asks the child to come to its end.
func (c *child) interrupt() { c.process.Signal(syscall.SIGTERM) }

func (c *child) stop() {
	c.in.Close()
	c.process.Stop(syscall.SIGTERM, grace)
}

// do runs a role once.
func do[T any](role string, group *cgroup.Group, what any) (result T, err error) {
	c, err := spawn(role, group)
	if err != nil {
		return result, err
	}
	defer c.stop()
	if err := c.tell(what); err != nil {
		return result, err
	}
	return result, c.hear(&result)
}

// interrupted returns a context that ends with Ctrl-C.
func interrupted() (context.Context, context.CancelFunc) {
	return signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
}
