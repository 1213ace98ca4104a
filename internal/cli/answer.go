package cli

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"unicode"

	"sumepoller/internal/operator"
)

// functionError is an error that the function itself returned. Its message
// says what the function did.
type functionError struct{ error }

// failedInvocation is how Lambda and its emulator describe a failed
// invocation, whatever the HTTP status.
type failedInvocation struct {
	Message *string         `json:"errorMessage"`
	Type    string          `json:"errorType"`
	Stack   json.RawMessage `json:"stackTrace"` // a panic's
}

// parseFailedInvocation returns nil for an answer that describes no failed
// invocation.
func parseFailedInvocation(answer []byte) *failedInvocation {
	text := string(bytes.TrimSpace(answer))
	if strings.HasPrefix(text, "Task timed out after ") { // the emulator's, which is not JSON
		text, _, _ = strings.Cut(text, "\n")
		return &failedInvocation{Message: &text, Type: "Sandbox.Timedout"}
	}
	var f failedInvocation
	if json.Unmarshal(answer, &f) != nil || f.Message == nil {
		return nil
	}
	return &f
}

// err returns a *functionError where the function returned the error, and
// another error where it panicked or was ended.
func (f *failedInvocation) err(kind string) error {
	err := errors.New("the function failed: " + printable(*f.Message))
	timedOut := f.Type == "" && strings.Contains(*f.Message, "Task timed out after ")
	if timedOut || f.Stack != nil || strings.HasPrefix(f.Type, "Sandbox.") || strings.HasPrefix(f.Type, "Runtime.") {
		return err
	}
	// An invalid payload: the poller's line begins with the unknown field, here
	// one of an order's; submit's line begins with "payload".
	word, _, _ := strings.Cut(*f.Message, ":")
	switch orderField := word == "idempotency_key" || word == "video" || word == "resend"; {
	case kind == kindSubmit && orderField:
		err = fmt.Errorf("the poller answered instead of the submit function, and nothing was bought: set FUNCTION_URL to the submit function's address; %w", err)
	case kind != kindSubmit && word == "payload":
		err = fmt.Errorf("the submit function answered instead of the poller: set FUNCTION_URL to the poller's address; %w", err)
	}
	return &functionError{err}
}

// printable replaces control characters, which could change the terminal.
func printable(s string) string {
	return strings.Map(func(r rune) rune {
		if unicode.IsControl(r) && r != '\n' && r != '\t' {
			return ' '
		}
		return r
	}, s)
}

func oneLine(s string) string { return strings.Join(strings.Fields(printable(s)), " ") }

// check returns an error unless the answer is the one that the right function
// gives to this request.
func (r request) check(answer []byte) error {
	if f := parseFailedInvocation(answer); f != nil {
		return f.err(r.kind)
	}
	answer = bytes.TrimSpace(answer)
	if len(answer) == 0 {
		return errors.New("the answer is empty: a function answers with a JSON object")
	}
	var head struct {
		Mode  string `json:"mode"`   // in every answer of the poller
		JobID string `json:"job_id"` // in every answer of submit, as is the state
		State string `json:"state"`
	}
	if json.Unmarshal(answer, &head) != nil || answer[0] != '{' {
		return errors.New("the answer is not a function's, which is a JSON object: is the address a function's?")
	}
	mode := r.kind
	if r.kind == kindStatus {
		mode = operator.ModeInspect
	}
	switch {
	case r.kind == kindSubmit && (head.JobID == "" || head.State == ""):
		return errors.New(`the answer is not the submit function's, which has "job_id" and "state": is the address the submit function's?`)
	case r.kind != kindSubmit && head.Mode != mode:
		return fmt.Errorf("the answer is not the poller's, which has \"mode\": %q: is the address the poller's?", mode)
	}
	return nil
}
