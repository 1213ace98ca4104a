// Package sandbox runs one function's binary as Lambda does: the binary asks
// this package's runtime endpoint for the next invocation and posts its answer
// there. In contrast to the emulator of make run it adds next to nothing to
// the times, which are taken where the function's requests arrive.
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
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"sumepoller/internal/bench/cgroup"
	"sumepoller/internal/devstack/process"
)

const (
	prefix    = "/2018-06-01/runtime/"
	requestID = "8476a536-e9f4-11e8-9739-2dfe598c3fcd"
)

// Sandbox is one function's process. One goroutine may use it.
type Sandbox struct {
	Init    time.Duration // from the process's start to its first request for work
	process *process.Process
	server  *httptest.Server
	output  *bytes.Buffer
	ready   chan struct{}
	work    chan invocation
	answers chan answer
}

type invocation struct {
	payload  []byte
	deadline time.Time
}

type answer struct {
	body   []byte
	failed bool
	at     time.Time
}

// Start starts the binary, in the group where there is one, and waits until it
// asks for work. Stop it in every case.
func Start(ctx context.Context, bootstrap string, env map[string]string, group *cgroup.Group) (*Sandbox, error) {
	s := &Sandbox{
		output: &bytes.Buffer{}, ready: make(chan struct{}, 64),
		work: make(chan invocation), answers: make(chan answer, 1),
	}
	s.server = httptest.NewServer(s)
	// A shell waits to be moved into the group before it becomes the binary.
	gate, open, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	defer open.Close()
	cmd := exec.Command("/bin/sh", "-c", `read go && exec "$0"`, bootstrap)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = gate, s.output, s.output
	cmd.Env = []string{"AWS_LAMBDA_RUNTIME_API=" + strings.TrimPrefix(s.server.URL, "http://")}
	for name, value := range env {
		cmd.Env = append(cmd.Env, name+"="+value)
	}
	s.process, err = process.Start(cmd, syscall.SIGKILL)
	gate.Close()
	if err != nil {
		s.server.Close()
		return nil, err
	}
	if group != nil {
		if err := group.Add(s.process.PID()); err != nil {
			s.Stop()
			return nil, err
		}
	}
	began := time.Now()
	if _, err := open.WriteString("go\n"); err != nil {
		s.Stop()
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

// Invoke runs one invocation with this limit, and returns its answer and how
// long it took, from the invocation's delivery to the answer's arrival.
func (s *Sandbox) Invoke(ctx context.Context, payload string, limit time.Duration) ([]byte, time.Duration, error) {
	began := time.Now()
	s.work <- invocation{[]byte(payload), began.Add(limit)}
	select {
	case a := <-s.answers:
		if a.failed {
			return a.body, 0, fmt.Errorf("the invocation failed: %s", a.body)
		}
		return a.body, a.at.Sub(began), nil
	case <-s.process.Done():
		return nil, 0, fmt.Errorf("the function ended: %s", s.output)
	case <-ctx.Done():
		return nil, 0, ctx.Err()
	}
}

// ServeHTTP is Lambda's runtime endpoint.
func (s *Sandbox) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	switch path := strings.TrimPrefix(r.URL.Path, prefix); {
	case path == "invocation/next":
		s.ready <- struct{}{}
		select {
		case next := <-s.work:
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
		s.answers <- answer{body, strings.HasSuffix(path, "/error"), at}
	default:
		http.NotFound(w, r)
	}
}

// Memory returns what the process holds now and what it held at most, in
// bytes; zeros where the system does not tell.
func (s *Sandbox) Memory() (now, most int64) {
	text, err := os.ReadFile(filepath.Join("/proc", strconv.Itoa(s.process.PID()), "status"))
	if err != nil {
		return 0, 0
	}
	for line := range strings.Lines(string(text)) {
		fields := strings.Fields(line)
		if len(fields) < 2 {
			continue
		}
		kib, _ := strconv.ParseInt(fields[1], 10, 64)
		switch fields[0] {
		case "VmRSS:":
			now = kib << 10
		case "VmHWM:":
			most = kib << 10
		}
	}
	return now, most
}
