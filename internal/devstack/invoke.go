package devstack

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"
)

// invokeClient opens a new connection for each invocation, so that none
// outlives its emulator.
var invokeClient = &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}

// Result is the result of an invocation.
type Result struct {
	Payload  []byte         // the function's answer; nil where it failed
	Failure  *FunctionError // the handler's error, a panic or an exit; nil where it answered
	TimedOut bool           // Lambda's timeout ended the process
	Took     time.Duration
}

// FunctionError is a failed invocation as Lambda describes it.
type FunctionError struct {
	Message string `json:"errorMessage"`
	Type    string `json:"errorType"`
}

// Error returns the function's message after its type.
func (e *FunctionError) Error() string { return e.Type + ": " + e.Message }

// Body returns what a caller of Lambda's API receives: the function's answer,
// or the description of its error.
func (r Result) Body() []byte {
	if r.Failure == nil {
		return r.Payload
	}
	body, _ := json.Marshal(r.Failure) // two strings
	return body
}

// Invoke invokes the function and waits for its answer. Invocations are served
// in turn. An error means that the emulator gave no answer: it was stopped or
// killed, or ctx ended; then the function may still run.
func (f *Function) Invoke(ctx context.Context, payload []byte) (Result, error) {
	return f.InvokeAs(ctx, "", payload)
}

// InvokeAs is Invoke with a request id. Lambda sends the same id again when it
// delivers an event twice.
func (f *Function) InvokeAs(ctx context.Context, requestID string, payload []byte) (Result, error) {
	select {
	case f.turn <- struct{}{}:
	case <-f.process.Done():
		return Result{}, fmt.Errorf("invoke %s: the emulator has ended", f.name)
	case <-ctx.Done():
		return Result{}, fmt.Errorf("invoke %s: %w", f.name, ctx.Err())
	}
	type answer struct {
		result Result
		err    error
	}
	answers := make(chan answer, 1)
	// The turn ends with the invocation, not with ctx: the emulator fails on a
	// second request while one runs.
	go func() {
		defer func() { <-f.turn }()
		result, err := f.post(requestID, payload)
		answers <- answer{result, err}
	}()
	select {
	case a := <-answers:
		return a.result, a.err
	case <-ctx.Done():
		return Result{}, fmt.Errorf("invoke %s: %w", f.name, ctx.Err())
	}
}

func (f *Function) post(requestID string, payload []byte) (Result, error) {
	req, err := http.NewRequest(http.MethodPost, //nolint:noctx // an invocation ends by itself, see InvokeAs
		"http://"+f.address+"/2015-03-31/functions/function/invocations", bytes.NewReader(payload))
	if err != nil {
		return Result{}, err
	}
	if requestID != "" {
		req.Header.Set("X-Amzn-RequestId", requestID)
	}
	start := time.Now()
	resp, err := invokeClient.Do(req)
	if err != nil {
		return Result{}, fmt.Errorf("invoke %s: %w", f.name, err)
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		return Result{}, fmt.Errorf("invoke %s: %w", f.name, err)
	}
	if f.ending.Load() { // the emulator can still answer for a killed function
		return Result{}, fmt.Errorf("invoke %s: the emulator was stopped", f.name)
	}
	result := parse(resp.StatusCode, body)
	result.Took = time.Since(start)
	return result, nil
}

// parse reads the emulator's answer. Only the body shows whether the invocation
// failed.
func parse(status int, body []byte) Result {
	if strings.HasPrefix(string(body), "Task timed out after ") {
		return Result{TimedOut: true, Failure: &FunctionError{Message: string(body), Type: "Sandbox.Timedout"}}
	}
	var failure FunctionError
	if json.Unmarshal(body, &failure) == nil && (failure.Message != "" || failure.Type != "") {
		return Result{Failure: &failure}
	}
	if status != http.StatusOK {
		return Result{Failure: &FunctionError{Message: fmt.Sprintf("HTTP %d: %s", status, body), Type: "Emulator"}}
	}
	return Result{Payload: body}
}
