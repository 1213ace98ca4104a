// Package sandbox runs a function's binary as Lambda does: the binary asks this
// package's runtime endpoint for the next invocation, and posts its response
// there. Unlike AWS's emulator it adds almost nothing to the measured times.
package sandbox

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"syscall"
	"time"

	"sumepoller/internal/devstack/process"
)

const (
	prefix    = "/2018-06-01/runtime/"
	requestID = "8476a536-e9f4-11e8-9739-2dfe598c3fcd"
)

// Sandbox is one function's process. One goroutine may use it.
type Sandbox struct {
	Init    time.Duration // from the process's start to its first request for an invocation
	process *process.Process
	server  *httptest.Server
	output  *bytes.Buffer
	ready   chan struct{}
	next    chan invocation
	ended   chan response
}

type invocation struct {
	payload  []byte
	deadline time.Time
}

type response struct {
	body   []byte
	failed bool
	at     time.Time
}

// Start starts the binary and waits until it asks for an invocation. Stop it in
// every case.
func Start(ctx context.Context, bootstrap string, env map[string]string) (*Sandbox, error) {
	s := &Sandbox{
		output: &bytes.Buffer{}, ready: make(chan struct{}, 64),
		next: make(chan invocation), ended: make(chan response, 1),
	}
	s.server = httptest.NewServer(s)
	cmd := exec.CommandContext(ctx, bootstrap)
	cmd.Stdout, cmd.Stderr = s.output, s.output
	cmd.Env = []string{"AWS_LAMBDA_RUNTIME_API=" + strings.TrimPrefix(s.server.URL, "http://")}
	for name, value := range env {
		cmd.Env = append(cmd.Env, name+"="+value)
	}
	began := time.Now()
	var err error
	if s.process, err = process.Start(cmd, syscall.SIGKILL); err != nil {
		s.server.Close()
		return nil, err
	}
	select {
	case <-s.ready:
		s.Init = time.Since(began)
		return s, nil
	case <-s.process.Done():
		err = fmt.Errorf("%s ended: %s", bootstrap, s.output)
	case <-ctx.Done():
		err = ctx.Err()
	}
	s.Stop()
	return nil, err
}

// Stop ends the process.
func (s *Sandbox) Stop() {
	s.process.Stop(syscall.SIGKILL, 0)
	s.server.CloseClientConnections()
	s.server.Close()
}

// Invoke runs one invocation with this time limit, and returns how long it
// took, from its delivery to the arrival of the response.
func (s *Sandbox) Invoke(ctx context.Context, payload string, limit time.Duration) (time.Duration, error) {
	began := time.Now()
	s.next <- invocation{[]byte(payload), began.Add(limit)}
	select {
	case r := <-s.ended:
		if r.failed {
			return 0, fmt.Errorf("the invocation failed: %s", r.body)
		}
		return r.at.Sub(began), nil
	case <-s.process.Done():
		return 0, fmt.Errorf("the function ended: %s", s.output)
	case <-ctx.Done():
		return 0, ctx.Err()
	}
}

// ServeHTTP is Lambda's runtime endpoint.
func (s *Sandbox) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	switch path := strings.TrimPrefix(r.URL.Path, prefix); {
	case path == "invocation/next":
		s.ready <- struct{}{}
		select {
		case next := <-s.next:
			h := w.Header()
			h.Set("Lambda-Runtime-Aws-Request-Id", requestID)
			h.Set("Lambda-Runtime-Deadline-Ms", strconv.FormatInt(next.deadline.UnixMilli(), 10))
			h.Set("Lambda-Runtime-Invoked-Function-Arn", "arn:aws:lambda:us-east-1:000000000000:function:poller")
			_, _ = w.Write(next.payload)
		case <-r.Context().Done():
		}
	case strings.HasSuffix(path, "/response"), strings.HasSuffix(path, "/error"):
		at := time.Now()
		body, _ := io.ReadAll(r.Body)
		w.WriteHeader(http.StatusAccepted)
		s.ended <- response{body, strings.HasSuffix(path, "/error"), at}
	default:
		http.NotFound(w, r)
	}
}

// Memory returns the memory that the process holds now, and the most that it
// has held, in bytes; zeros where this is not Linux.
func (s *Sandbox) Memory() (now, most int64) {
	status, _ := os.ReadFile(fmt.Sprintf("/proc/%d/status", s.process.PID()))
	kibibytes := func(field string) int64 {
		_, after, _ := strings.Cut(string(status), field+":")
		var n int64
		_, _ = fmt.Sscan(after, &n)
		return n << 10
	}
	return kibibytes("VmRSS"), kibibytes("VmHWM")
}
