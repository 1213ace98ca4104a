package main_test

import (
	"net"
	"net/http"
	"os"
	"slices"
	"strconv"
	"syscall"
	"testing"
	"time"

	"sumepoller/internal/config"
	"sumepoller/internal/poller"
	"sumepoller/internal/sume/sumetest"
)

func TestAPIDown_Errors(t *testing.T) {
	t.Parallel()
	for name, fault := range map[string]sumetest.Fault{
		"503":          {Status: 503},
		"HTML instead": {Status: 200, Body: "<!doctype html><title>Back soon</title>"},
		"resets":       {Break: sumetest.BreakReset},
		"silence":      {Break: sumetest.BreakHang},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newStage(t)
			s.due(t, sumetest.Plan{}, ids("job", 2000)...)
			s.api.SetFault("", fault)
			b := s.sandbox(t, "POLL_BUDGET=10s", "SUME_REQUEST_TIMEOUT=1s")
			got := b.tick(t)
			b = s.sandbox(t, "POLL_BUDGET=10s") // with more patience, for a busy machine
			seen := s.api.Stats()
			if got.Stopped != poller.StoppedAPIUnavailable || seen.Reads >= 200 {
				t.Errorf("%d reads, summary %+v", seen.Reads, got)
			}
			s.api.SetFault("")
			s.recovers(t, b, got, func(id string) bool { return seen.Jobs[id].Reads > 0 })
		})
	}
}

// The API refuses connections, and later accepts them.
func TestAPIDown_PortClosed(t *testing.T) {
	t.Parallel()
	s := newStage(t)
	address, open := closedPort(t)
	s.due(t, sumetest.Plan{}, ids("job", 2000)...)
	b := s.sandbox(t, "POLL_BUDGET=10s", config.APIBaseURL+"=http://"+address)
	got := b.tick(t)
	if got.Stopped != poller.StoppedAPIUnavailable || got.Errors[poller.Network] < 20 || got.Errors[poller.Network] >= 200 {
		t.Errorf("summary %+v", got)
	}
	open(sumetest.Handler(s.api, s.vault))
	s.recovers(t, b, got, func(string) bool { return true })
}

// A host that accepts connections and does not speak TLS.
func TestAPIDown_ConnectTimeout(t *testing.T) {
	t.Parallel()
	silent, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = silent.Close() })
	s := newStage(t)
	s.due(t, sumetest.Plan{}, ids("job", 100)...)
	got := s.sandbox(t, "POLL_BUDGET=20s", "SUME_REQUEST_TIMEOUT=1s", config.APIBaseURL+"=https://"+silent.Addr().String()).tick(t)
	if got.Stopped != poller.StoppedAPIUnavailable || got.Errors[poller.Timeout] < 20 || got.Errors[poller.Timeout] >= 100 {
		t.Errorf("summary %+v", got)
	}
	if n := s.number(t, `SELECT count(*) FROM video_jobs WHERE last_error = 'timeout connecting'`); n != got.Errors[poller.Timeout] {
		t.Errorf("%d rows say that connecting took too long, want %d", n, got.Errors[poller.Timeout])
	}
	s.zero(t, held)
}

// recovers checks that the run down charged only rows that were read and leased
// none, and that all 2000 jobs are finished soon after.
func (s *stage) recovers(t *testing.T, b *sandbox, down poller.Summary, read func(id string) bool) {
	t.Helper()
	failed := 0
	for _, n := range down.Errors {
		failed += n
	}
	rows := s.entries(t)
	var spared []string
	for id, row := range rows {
		switch {
		case row.Errors > 1 || row.Errors == 1 && (!read(id) || !row.Failing):
			t.Errorf("%s: %+v, read: %t", id, row, read(id))
		case row.Errors == 0:
			spared = append(spared, id)
		}
	}
	if len(rows)-len(spared) != failed || failed >= 200 {
		t.Errorf("%d rows are charged, %d errors were counted", len(rows)-len(spared), failed)
	}
	s.zero(t, held)
	b.times(t, 3)
	rows = s.entries(t)
	late := slices.DeleteFunc(spared, func(id string) bool { return rows[id].State == "completed" })
	if len(late) > 0 {
		t.Errorf("%d uncharged rows were not read within three runs: %v", len(late), late[:min(9, len(late))])
	}
	s.pass(t, time.Minute)
	b.times(t, 3)
	s.ended(t, map[string]int{"completed": 2000})
}

func (b *sandbox) times(t *testing.T, n int) {
	t.Helper()
	for range n {
		b.tick(t)
	}
}

// closedPort returns an address that refuses connections and that no other program
// can take, and a function that begins to serve there.
func closedPort(t *testing.T) (address string, open func(http.Handler)) {
	t.Helper()
	socket, err := syscall.Socket(syscall.AF_INET, syscall.SOCK_STREAM, 0)
	if err != nil {
		t.Fatal(err)
	}
	file := os.NewFile(uintptr(socket), "socket")
	t.Cleanup(func() { _ = file.Close() })
	if err := syscall.Bind(socket, &syscall.SockaddrInet4{Addr: [4]byte{127, 0, 0, 1}}); err != nil {
		t.Fatal(err)
	}
	bound, err := syscall.Getsockname(socket)
	if err != nil {
		t.Fatal(err)
	}
	return "127.0.0.1:" + strconv.Itoa(bound.(*syscall.SockaddrInet4).Port), func(h http.Handler) {
		if err := syscall.Listen(socket, 128); err != nil {
			t.Fatal(err)
		}
		l, err := net.FileListener(file)
		if err != nil {
			t.Fatal(err)
		}
		server := &http.Server{Handler: h, ReadHeaderTimeout: patience}
		done := make(chan struct{})
		go func() { defer close(done); _ = server.Serve(l) }()
		t.Cleanup(func() { _ = server.Close(); <-done })
	}
}
