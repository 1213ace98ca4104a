package devstack_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"sumepoller/internal/devstack"
)

func start(t *testing.T, env map[string]string, timeout time.Duration) *devstack.Function {
	t.Helper()
	bootstrap, err := devstack.Actor(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	f, err := devstack.StartFunction(t.Context(), "actor", bootstrap, env, timeout)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(f.Stop)
	return f
}

func invoke(t *testing.T, f *devstack.Function, payload string) devstack.Result {
	t.Helper()
	result, err := f.Invoke(t.Context(), []byte(payload))
	if err != nil {
		t.Fatalf("invoke %s: %v\n%s", payload, err, f.Log())
	}
	return result
}

// pid invokes the function and returns the process that answered.
func pid(t *testing.T, f *devstack.Function) int {
	t.Helper()
	result := invoke(t, f, `{"do": "pid"}`)
	id, err := strconv.Atoi(string(result.Payload))
	if err != nil {
		t.Fatalf("answer %q, failure %v: want a process id", result.Payload, result.Failure)
	}
	return id
}

// stillRuns reports whether the process runs for another second. A zombie does
// not run.
func stillRuns(pid int) bool {
	for range 100 {
		stat, _ := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
		if syscall.Kill(pid, 0) != nil || bytes.Contains(stat, []byte(") Z ")) {
			return false
		}
		<-time.After(10 * time.Millisecond)
	}
	return true
}

func TestFunction_Environment(t *testing.T) {
	t.Setenv("PGPASSWORD", "of-this-process")
	f := start(t, map[string]string{"SUME_API_BASE_URL": "http://127.0.0.1:1/v1"}, time.Minute)
	var env []string
	if err := json.Unmarshal(invoke(t, f, `{"do": "env"}`).Payload, &env); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"SUME_API_BASE_URL=http://127.0.0.1:1/v1", "AWS_LAMBDA_FUNCTION_NAME=actor"} {
		if !slices.Contains(env, want) {
			t.Errorf("environment lacks %s: %q", want, env)
		}
	}
	if slices.Contains(env, "PGPASSWORD=of-this-process") {
		t.Error("the function has a variable of the process that started it")
	}
	// The output can arrive later than the answer.
	for end := time.Now().Add(time.Minute); !strings.Contains(f.Log(), "asked to env"); {
		if time.Now().After(end) {
			t.Fatalf("log %q lacks the function's output", f.Log())
		}
		<-time.After(time.Millisecond)
	}
}

func TestInvoke_Failed(t *testing.T) {
	t.Parallel()
	f := start(t, nil, time.Second)
	for _, c := range []struct {
		when, payload, message string
		timedOut               bool
	}{
		{"error", `{"do": "fail"}`, "it did not work", false},
		{"panic", `{"do": "panic"}`, "out of order", false},
		{"exit", `{"do": "exit"}`, "exit status 3", false},
		{"timeout", `{"do": "wait", "ms": 5000}`, "timed out", true},
	} {
		t.Run(c.when, func(t *testing.T) {
			got := invoke(t, f, c.payload)
			if got.Failure == nil || !strings.Contains(got.Failure.Message, c.message) || got.TimedOut != c.timedOut {
				t.Errorf("got %+v, failure %v: want %q, timed out %v", got, got.Failure, c.message, c.timedOut)
			}
			pid(t, f) // the sandbox still works
		})
	}
}

func TestInvoke_Concurrent(t *testing.T) {
	t.Parallel()
	f := start(t, nil, time.Minute)
	var group sync.WaitGroup
	for range 4 {
		group.Go(func() {
			result, err := f.Invoke(t.Context(), []byte(`{"do": "wait", "ms": 20}`))
			if err != nil || result.Failure != nil {
				t.Errorf("got %v, failure %v", err, result.Failure)
			}
		})
	}
	group.Wait()
}

func TestInvoke_Abandoned(t *testing.T) {
	t.Parallel()
	f := start(t, nil, time.Minute)
	pid(t, f)
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	if _, err := f.Invoke(ctx, []byte(`{"do": "wait", "ms": 300}`)); !errors.Is(err, context.DeadlineExceeded) {
		t.Fatalf("got %v, want the context's error", err)
	}
	pid(t, f)
}

func TestFreeze(t *testing.T) {
	t.Parallel()
	f := start(t, nil, time.Minute)
	if err := f.Freeze(); err == nil {
		t.Error("froze a function that has no process yet")
	}
	pid(t, f)
	if err := f.Freeze(); err != nil {
		t.Fatal(err)
	}
	answered := make(chan error, 1)
	go func() {
		_, err := f.Invoke(context.Background(), []byte(`{"do": "pid"}`))
		answered <- err
	}()
	select {
	case err := <-answered:
		t.Fatalf("a frozen function answered (%v)", err)
	case <-time.After(200 * time.Millisecond):
	}
	if err := f.Thaw(); err != nil {
		t.Fatal(err)
	}
	if err := <-answered; err != nil {
		t.Error(err)
	}
}

func TestStop(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		when string
		end  func(*devstack.Function)
	}{
		{"stopped", (*devstack.Function).Stop},
		{"killed", (*devstack.Function).Kill},
		{"stopped while frozen", func(f *devstack.Function) { _ = f.Freeze(); f.Stop() }},
	} {
		t.Run(c.when, func(t *testing.T) {
			t.Parallel()
			f := start(t, nil, time.Minute)
			id := pid(t, f)
			ended := make(chan error, 1)
			go func() {
				result, err := f.Invoke(context.Background(), []byte(`{"do": "wait", "ms": 60000}`))
				if result.Failure != nil {
					err = result.Failure
				}
				ended <- err
			}()
			for !strings.Contains(f.Log(), "asked to wait") {
				select {
				case err := <-ended:
					t.Fatalf("the invocation ended early: %v", err)
				case <-time.After(time.Millisecond):
				}
			}
			c.end(f)
			if err := <-ended; err == nil {
				t.Error("an invocation in flight was answered")
			}
			if stillRuns(id) {
				t.Errorf("process %d is left", id)
			}
			if _, err := f.Invoke(t.Context(), nil); err == nil {
				t.Error("an ended function took an invocation")
			}
		})
	}
}
