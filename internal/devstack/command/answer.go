package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"unicode"
)

// functionError is an error that the function itself returned, and which
// therefore says what it did.
type functionError struct{ error }

// failure is what Lambda and its emulator answer for a failed invocation,
// whatever the HTTP status.
type failure struct {
	Message *string         `json:"errorMessage"`
	Type    string          `json:"errorType"`
	Stack   json.RawMessage `json:"stackTrace"` // a panic's
}

// parseFailure returns the failure that an answer describes, or nil.
func parseFailure(answer []byte) *failure {
	text := string(bytes.TrimSpace(answer))
	if strings.HasPrefix(text, "Task timed out after ") { // the emulator's, which is not JSON
		text, _, _ = strings.Cut(text, "\n")
		return &failure{Message: &text, Type: "Sandbox.Timedout"}
	}
	var f failure
	if json.Unmarshal(answer, &f) != nil || f.Message == nil {
		return nil
	}
	return &f
}

// err returns the failure as an error: a *functionError where the function
// returned it, another one where the function panicked or was ended.
func (f *failure) err(what string) error {
	printable := func(r rune) rune {
		if unicode.IsControl(r) && r != '\n' && r != '\t' {
			return ' '
		}
		return r
	}
	err := errors.New("the function failed: " + strings.Map(printable, *f.Message))
	if f.Stack != nil || strings.HasPrefix(f.Type, "Sandbox.") || strings.HasPrefix(f.Type, "Runtime.") {
		return err
	}
	// A refused payload: the poller's line begins with the field at fault, here
	// one of an order's, submit's with the word payload.
	word, _, _ := strings.Cut(*f.Message, ":")
	switch order := word == "idempotency_key" || word == "video" || word == "resend"; {
	case what == "submit" && order:
		err = fmt.Errorf("the poller answered in place of the submit function, and nothing was bought: set FUNCTION_URL to the submit function's address; %w", err)
	case what != "submit" && word == "payload":
		err = fmt.Errorf("the submit function answered in place of the poller: set FUNCTION_URL to the poller's address; %w", err)
	}
	return &functionError{err}
}

// checkAnswer returns an error unless the answer is the one that the right
// function gives to this request.
func checkAnswer(what string, answer []byte) error {
	if f := parseFailure(answer); f != nil {
		return f.err(what)
	}
	if len(bytes.TrimSpace(answer)) == 0 {
		return errors.New("the answer is empty: a function answers with a JSON object")
	}
	var head struct {
		Mode  string `json:"mode"`   // in every answer of the poller
		JobID string `json:"job_id"` // in every answer of submit, as is the state
		State string `json:"state"`
	}
	if json.Unmarshal(answer, &head) != nil || bytes.TrimSpace(answer)[0] != '{' {
		return errors.New("the answer is not a function's, which is a JSON object: is the address a function's?")
	}
	mode := map[string]string{"status": "inspect", "backfill": "backfill", "stop": "stop"}[what]
	switch {
	case what == "submit" && (head.JobID == "" || head.State == ""):
		return errors.New(`the answer is not the submit function's, which has "job_id" and "state": is the address the submit function's?`)
	case what != "submit" && head.Mode != mode:
		return fmt.Errorf("the answer is not the poller's, which has \"mode\": %q: is the address the poller's?", mode)
	}
	return nil
}
