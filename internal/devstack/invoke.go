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

// invokeClient opens a connection for each invocation, so that none outlives
// its emulator.
var invokeClient = &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}

// Result is what an invocation came to.
type Result struct {
	Payload  []byte         // the function's answer; nil where it failed
	Failure  *FunctionError // the handler's error, a panic or an exit; nil where it answered
	TimedOut bool           // Lambda's timeout struck and the process was killed
	Took     time.Duration
}

// FunctionError is a failed invocation as Lambda describes it.
type FunctionError struct {
	Message string `json:"errorMessage"`
	Type    string `json:"errorType"`
}

// Error returns the function's message after its type.
func (e *FunctionError) Error() string { return e.Type + ": " + e.Message }

// Body is the answer as a caller of Lambda's own API sees it: the function's
// answer, or the description of its failure.
func (r Result) Body() []byte {
	if r.Failure == nil {
		return r.Payload
	}
	body, _ := json.Marshal(r.Failure) // two strings
	return body
}

// Invoke invokes the function and waits for what comes of it, after those
// that were asked before. An error means that the emulator gave no answer:
// it was stopped or killed, or ctx ended; the function may then still run.
func (f *Function) Invoke(ctx context.Context, payload []byte) (Result, error) {
	return f.InvokeAs(ctx, "", payload)
}

// InvokeAs is Invoke with a request id of the caller's; the same one again is
// how Lambda delivers an event twice.
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
	// The turn ends with the invocation, not with ctx: a second request while
	// one runs brings the emulator down.
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
	if f.ending.Load() { // the emulator can answer for a function that was cut off
		return Result{}, fmt.Errorf("invoke %s: the emulator was stopped", f.name)
	}
	result := parse(resp.StatusCode, body)
	result.Took = time.Since(start)
	return result, nil
}

// parse reads the emulator's answer, which tells a failed invocation by the
// body alone.
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
