// Package process starts children that end with their parent.
//
// A child leads a process group of its own, so that a terminal's Ctrl-C
// reaches the parent alone, which then ends its children in the right order.
// On Linux the kernel also signals the child when the parent dies without
// having been asked, SIGKILL included.
package process

import (
	"context"
	"fmt"
	"os/exec"
	"runtime"
	"syscall"
	"time"
)

// drain bounds the wait for output that a grandchild may still hold open.
const drain = 2 * time.Second

// Process is a running child. Its methods may be called at the same time.
type Process struct {
	cmd  *exec.Cmd
	done chan struct{}
	err  error // set before done is closed
}

// Start starts cmd in a process group of its own. Where the parent dies
// unasked the child gets the signal death (Linux only).
func Start(cmd *exec.Cmd, death syscall.Signal) (*Process, error) {
	if cmd.SysProcAttr == nil {
		cmd.SysProcAttr = &syscall.SysProcAttr{}
	}
	cmd.SysProcAttr.Setpgid = true
	signalOnParentDeath(cmd.SysProcAttr, death)
	cmd.WaitDelay = drain
	p := &Process{cmd: cmd, done: make(chan struct{})}
	started := make(chan error, 1)
	go p.run(started)
	if err := <-started; err != nil {
		return nil, fmt.Errorf("start %s: %w", cmd.Path, err)
	}
	return p, nil
}

// run starts and awaits the child on one thread, kept for as long: the kernel
// takes the end of the thread that started a child for the parent's death.
func (p *Process) run(started chan<- error) {
	runtime.LockOSThread()
	err := p.cmd.Start()
	started <- err
	if err != nil {
		return
	}
	p.err = p.cmd.Wait()
	close(p.done)
}

// Run runs cmd to its end. Where ctx ends first the group is interrupted, and
// killed after grace; the error is then ctx's.
func Run(ctx context.Context, cmd *exec.Cmd, grace time.Duration) error {
	p, err := Start(cmd, syscall.SIGKILL)
	if err != nil {
		return err
	}
	select {
	case <-p.done:
		return p.err
	case <-ctx.Done():
		p.Stop(syscall.SIGINT, grace)
		return ctx.Err()
	}
}

// PID returns the child's process id, which is its group's too.
func (p *Process) PID() int { return p.cmd.Process.Pid }

// Done is closed when the child has ended.
func (p *Process) Done() <-chan struct{} { return p.done }

// Err returns how the child ended, once Done is closed.
func (p *Process) Err() error {
	<-p.done
	return p.err
}

// Signal sends sig to every process of the child's group. A group that has
// ended is no error.
func (p *Process) Signal(sig syscall.Signal) {
	_ = syscall.Kill(-p.PID(), sig)
}

// Stop sends sig to the group, waits for the child to end, and kills the group
// after grace. Nothing of the group is left when it returns.
func (p *Process) Stop(sig syscall.Signal, grace time.Duration) {
	select {
	case <-p.done:
	default:
		p.Signal(sig)
	}
	timer := time.NewTimer(grace)
	defer timer.Stop()
	select {
	case <-p.done:
	case <-timer.C:
	}
	p.Signal(syscall.SIGKILL)
	<-p.done
}
