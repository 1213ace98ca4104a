// Package process starts children that end with their parent.
//
// A child is the leader of a new process group. So a terminal's Ctrl-C reaches
// only the parent, which then ends its children in the right order. On Linux
// the kernel also signals the child when the parent dies, even by SIGKILL.
package process

import (
	"context"
	"fmt"
	"os/exec"
	"runtime"
	"syscall"
	"time"
)

// drain limits the wait for output that a grandchild keeps open.
const drain = 2 * time.Second

// Process is a child. Its methods are safe for concurrent use.
type Process struct {
	cmd  *exec.Cmd
	done chan struct{}
	err  error // set before done is closed
}

// Start starts cmd in a new process group. The child gets the signal death when
// the parent dies (Linux only).
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

// run keeps its thread until the child ends: for the kernel, the parent dies
// when the thread that started the child ends.
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

// Run runs cmd to its end. If ctx ends first, the group is interrupted, and
// killed after grace; the error is then that of ctx.
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

// PID returns the id of the child and of its group.
func (p *Process) PID() int { return p.cmd.Process.Pid }

// Done is closed when the child has ended.
func (p *Process) Done() <-chan struct{} { return p.done }

// Err returns how the child ended, once Done is closed.
func (p *Process) Err() error {
	<-p.done
	return p.err
}

// Signal sends sig to every process of the child's group, if there is one.
func (p *Process) Signal(sig syscall.Signal) {
	_ = syscall.Kill(-p.PID(), sig)
}

// Stop sends sig to the group, waits for the child to end, and kills the group
// after grace. When it returns, no process of the group is left.
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
