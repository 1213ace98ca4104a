// Package devstack runs the functions on this machine as they run on Lambda:
// their own binaries under AWS's runtime interface emulator. make run and the
// end-to-end tests use it.
package devstack

import (
	"context"
	"errors"
	"fmt"
	"math"
	"net"
	"os/exec"
	"strconv"
	"sync/atomic"
	"syscall"
	"time"

	"sumepoller/internal/devstack/environment"
	"sumepoller/internal/devstack/process"
)

const (
	startAttempts = 3                      // another program can take a port first
	startLimit    = 10 * time.Second       // until the port is open
	settleTime    = 30 * time.Millisecond  // after which an emulator whose port is taken has ended
	stopGrace     = 3 * time.Second        // from SIGTERM to SIGKILL
	dialEvery     = 5 * time.Millisecond   // between two attempts to connect
	dialLimit     = 500 * time.Millisecond // of one attempt
)

// Function is one sandbox: a function's binary under its own emulator. It
// serves one invocation at a time, as a sandbox on Lambda does; Invoke waits
// for its turn. The methods are safe for concurrent use.
type Function struct {
	name    string
	process *process.Process
	address string        // of the emulator
	turn    chan struct{} // full while an invocation runs
	log     functionLog
	ending  atomic.Bool // Stop or Kill was called
}

// StartFunction starts an emulator for the function's binary. The function
// gets the variables of env and those that Lambda sets, none of this process's.
// The timeout is Lambda's, rounded up to seconds. The binary starts with the
// first invocation. The caller must call Stop.
func StartFunction(ctx context.Context, name, bootstrap string, env map[string]string, timeout time.Duration) (*Function, error) {
	emulator, err := Emulator()
	if err != nil {
		return nil, err
	}
	for attempt := 1; ; attempt++ {
		f, err := startOnce(ctx, emulator, name, bootstrap, variables(name, env, timeout))
		if err == nil {
			return f, nil
		}
		if attempt == startAttempts || ctx.Err() != nil {
			return nil, fmt.Errorf("start function %s: %w", name, err)
		}
	}
}

func startOnce(ctx context.Context, emulator, name, bootstrap string, env []string) (*Function, error) {
	ports, err := freePorts(2)
	if err != nil {
		return nil, err
	}
	output, err := newFunctionLog()
	if err != nil {
		return nil, err
	}
	f := &Function{
		name:    name,
		address: fmt.Sprintf("127.0.0.1:%d", ports[0]),
		turn:    make(chan struct{}, 1),
		log:     output,
	}
	cmd := exec.Command(emulator, "--log-level", "warn",
		"--runtime-interface-emulator-address", f.address,
		"--runtime-api-address", fmt.Sprintf("127.0.0.1:%d", ports[1]), bootstrap)
	cmd.Env, cmd.Stdout, cmd.Stderr = env, f.log.File, f.log.File
	f.process, err = process.Start(cmd, syscall.SIGTERM)
	if err != nil {
		return nil, err
	}
	if err := f.awaitPort(ctx); err != nil {
		f.Kill()
		return nil, err
	}
	return f, nil
}

// variables returns the environment of the emulator and of the function.
func variables(name string, env map[string]string, timeout time.Duration) []string {
	vars := []string{
		"AWS_LAMBDA_FUNCTION_NAME=" + name,
		"AWS_LAMBDA_FUNCTION_TIMEOUT=" + strconv.Itoa(max(1, int(math.Ceil(timeout.Seconds())))),
	}
	for key, value := range environment.AWS {
		vars = append(vars, key+"="+value)
	}
	for key, value := range env { // the last value wins
		vars = append(vars, key+"="+value)
	}
	return vars
}

// awaitPort waits until the emulator listens. If another program has taken the
// port, the emulator ends; so it must still run a little later.
func (f *Function) awaitPort(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, startLimit)
	defer cancel()
	wait := dialEvery
	for open := false; !open; {
		conn, err := net.DialTimeout("tcp", f.address, dialLimit)
		if err == nil {
			conn.Close()
			open, wait = true, settleTime
		}
		select {
		case <-f.process.Done():
			return fmt.Errorf("emulator ended: %w\n%s", errors.Join(f.process.Err()), f.log)
		case <-ctx.Done():
			return fmt.Errorf("emulator does not listen: %w", ctx.Err())
		case <-time.After(wait):
		}
	}
	return nil
}

// Log returns the newest 8 MiB that the function and the emulator wrote. It
// includes everything that was written before an answer.
func (f *Function) Log() string { return f.log.String() }

// Stop ends the function and its emulator at once, also during an invocation.
// It may be called again.
func (f *Function) Stop() {
	f.ending.Store(true)
	children, _ := process.Children(f.process.PID())
	f.process.Stop(syscall.SIGTERM, stopGrace)
	killGroups(children)
}

// Kill ends both with SIGKILL, like a crash of the machine.
func (f *Function) Kill() {
	f.ending.Store(true)
	f.process.Signal(syscall.SIGSTOP) // so that it neither answers nor starts a process
	children, _ := process.Children(f.process.PID())
	f.process.Signal(syscall.SIGKILL)
	killGroups(children)
	f.process.Stop(syscall.SIGKILL, stopGrace)
}

// killGroups kills the functions of an ended emulator. Each is the leader of a
// process group.
func killGroups(pids []int) {
	for _, pid := range pids {
		_ = syscall.Kill(-pid, syscall.SIGKILL)
	}
}

// Freeze suspends the function's process, as Lambda freezes a sandbox. The
// emulator goes on. An error means that no process runs.
func (f *Function) Freeze() error {
	children, err := f.signalBootstrap(syscall.SIGSTOP)
	// On a busy machine the signal takes effect some time after it was sent.
	for _, pid := range children {
		for end := time.Now().Add(stopGrace); !process.Stopped(pid) && time.Now().Before(end); {
			time.Sleep(time.Millisecond)
		}
	}
	return err
}

// Thaw resumes a frozen process.
func (f *Function) Thaw() error {
	_, err := f.signalBootstrap(syscall.SIGCONT)
	return err
}

func (f *Function) signalBootstrap(sig syscall.Signal) ([]int, error) {
	select {
	case <-f.process.Done():
		return nil, fmt.Errorf("function %s has ended", f.name)
	default:
	}
	children, err := process.Children(f.process.PID())
	if err != nil {
		return nil, err
	}
	if len(children) == 0 {
		return nil, fmt.Errorf("function %s has no process yet: it starts with the first invocation", f.name)
	}
	for _, pid := range children {
		if err := syscall.Kill(-pid, sig); err != nil {
			return nil, fmt.Errorf("signal function %s: %w", f.name, err)
		}
	}
	return children, nil
}
