package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"time"
	"unicode/utf8"

	"sumepoller/internal/status"
)

const (
	invokeLimit    = 16 * time.Minute // longer than a function can run
	settingsPath   = "infra/settings.json"
	largestPayload = 6 << 20 // Lambda's limit of a request and of an answer, in bytes
)

// byHand invokes a function by hand, prints the answer and returns the exit
// code. what is status, backfill, submit or stop; argument its file or job.
// It goes to FUNCTION_URL where that is set, else to the deployed stack.
func byHand(ctx context.Context, what, argument string) int {
	payload, err := request(what, argument)
	if err != nil {
		fmt.Fprintf(os.Stderr, "make %s: %v\n", what, err)
		return 2
	}
	ctx, cancel := context.WithTimeout(ctx, invokeLimit)
	defer cancel()
	function := "poller"
	if what == "submit" {
		function = "submit"
	}
	answer, err := send(ctx, function, payload)
	if err == nil {
		err = checkAnswer(what, answer)
	}
	if err == nil {
		err = status.Print(os.Stdout, answer)
	}
	if err == nil {
		return 0
	}
	hint := ""
	if function == "submit" && !errors.As(err, new(notSent)) && !errors.As(err, new(*functionError)) {
		hint = "; whether the order was sent is unknown: run it again with the same key, which pays once"
	}
	fmt.Fprintf(os.Stderr, "make %s: %v%s\n", what, err, hint)
	return 1
}

// request returns the payload. What would run the schedule's pass in place of
// what was asked for is refused.
func request(what, argument string) ([]byte, error) {
	switch what {
	case "status":
		inspect := map[string]any{}
		if argument != "" {
			inspect["job_ids"] = []string{argument}
		}
		return json.Marshal(map[string]any{"inspect": inspect})
	case "stop":
		if argument == "" {
			return nil, errors.New("which job? JOB=its id")
		}
		return json.Marshal(map[string]any{"stop": map[string]any{"job_ids": []string{argument}}})
	case "backfill", "submit":
		return fromFile(what, argument)
	}
	return nil, errors.New("no such request")
}

func fromFile(what, path string) ([]byte, error) {
	if path == "" {
		return nil, errors.New("which request? FILE=a file with its JSON")
	}
	payload, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	if !utf8.Valid(payload) {
		return nil, fmt.Errorf("%s: not UTF-8", path)
	}
	field := map[string]string{"backfill": "backfill", "submit": "idempotency_key"}[what]
	var fields map[string]json.RawMessage
	if err := json.Unmarshal(payload, &fields); err != nil {
		return nil, fmt.Errorf("%s: no JSON object: %w", path, err)
	}
	if _, ok := fields[field]; !ok {
		return nil, fmt.Errorf("%s: the field %q is missing", path, field)
	}
	if len(payload) > largestPayload {
		return nil, fmt.Errorf("%s: %d bytes; Lambda takes at most %d", path, len(payload), largestPayload)
	}
	return payload, nil
}

// send invokes the function and returns its answer, or the description of its
// failure. The error is a notSent where the payload cannot have arrived.
func send(ctx context.Context, function string, payload []byte) ([]byte, error) {
	if address := os.Getenv("FUNCTION_URL"); address != "" {
		return post(ctx, address, payload)
	}
	name, err := stackName()
	if err != nil {
		return nil, notSent{err}
	}
	return invokeAWS(ctx, name+"-"+function, payload)
}

// stackName reads the name from the stack's settings.
func stackName() (string, error) {
	path := os.Getenv("SETTINGS")
	if path == "" {
		path = settingsPath
	}
	text, err := os.ReadFile(path)
	if err != nil {
		return "", fmt.Errorf("which stack? set FUNCTION_URL, or name the stack's settings in SETTINGS: %w", err)
	}
	var settings struct {
		Name string `json:"name"`
	}
	if err := json.Unmarshal(text, &settings); err != nil || settings.Name == "" {
		return "", fmt.Errorf("%s names no stack", path)
	}
	return settings.Name, nil
}

// invokeAWS invokes through AWS's command line, once: asking again is for a
// person to decide.
func invokeAWS(ctx context.Context, name string, payload []byte) ([]byte, error) {
	if _, err := exec.LookPath("aws"); err != nil {
		return nil, notSent{errors.New("no aws in PATH: install AWS's command line, or set FUNCTION_URL")}
	}
	dir, err := os.MkdirTemp("", "sumepoller-invoke-")
	if err != nil {
		return nil, notSent{err}
	}
	defer os.RemoveAll(dir)
	in, out := filepath.Join(dir, "in"), filepath.Join(dir, "out")
	if err := os.WriteFile(in, payload, 0o600); err != nil {
		return nil, notSent{err}
	}
	cmd := exec.CommandContext(ctx, "aws", "lambda", "invoke", "--function-name", name,
		"--cli-read-timeout", "0", "--payload", "fileb://"+in, out)
	cmd.Env = append(os.Environ(), "AWS_MAX_ATTEMPTS=1", "AWS_PAGER=")
	if text, err := cmd.CombinedOutput(); err != nil {
		return nil, fmt.Errorf("aws lambda invoke %s: %w\n%s", name, err, bytes.TrimSpace(text))
	}
	return os.ReadFile(out)
}
