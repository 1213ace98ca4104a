package cli

import (
	"bytes"
	"encoding/csv"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"unicode/utf8"

	"sumepoller/internal/operator"
)

// Kinds of request.
const (
	kindStatus   = "status"
	kindBackfill = "backfill"
	kindStop     = "stop"
	kindSubmit   = "submit"
)

// request is what is sent, and how its answer is shown.
type request struct {
	kind    string
	payload []byte
	state   string // shows only these jobs; empty: all
	json    bool   // prints the answer as JSON
}

// function returns the short name of the function that takes the request.
func (r request) function() string {
	if r.kind == kindSubmit {
		return "submit"
	}
	return "poller"
}

// newRequest reads the arguments. A request that would start a scheduled run
// instead of what was asked for is refused.
func newRequest(args []string, stdin io.Reader) (request, error) {
	r := request{kind: strings.Join(args, " "), state: strings.TrimSpace(os.Getenv("STATE"))}
	if !slices.Contains([]string{kindStatus, kindBackfill, kindStop, kindSubmit}, r.kind) {
		return r, errors.New("no such request; want status, backfill, stop or submit")
	}
	switch format := os.Getenv("FORMAT"); format {
	case "", "json":
		r.json = format != ""
	default:
		return r, fmt.Errorf("FORMAT=%s: want json, or nothing", format)
	}
	if r.state != "" && r.kind != kindStatus {
		return r, errors.New("STATE is for make status; name a backfill's states in FILE")
	}
	var ids []string
	var err error
	if r.kind != kindSubmit {
		if ids, err = jobIDs(stdin); err != nil {
			return r, err
		}
	}
	r.payload, err = r.build(ids, os.Getenv("FILE"), stdin)
	if err == nil && len(r.payload) > maxPayload {
		err = fmt.Errorf("the request has %d bytes; Lambda takes at most %d", len(r.payload), maxPayload)
	}
	return r, err
}

func (r request) build(ids []string, file string, stdin io.Reader) ([]byte, error) {
	selected := map[string]any{}
	if len(ids) > 0 {
		selected["job_ids"] = ids
	}
	switch r.kind {
	case kindStatus:
		if r.state != "" && len(ids) == 0 {
			return nil, errors.New("STATE needs JOB or IDS: an inspect answer does not list all jobs of a state")
		}
		return json.Marshal(map[string]any{operator.ModeInspect: selected})
	case kindStop:
		if len(ids) == 0 {
			return nil, errors.New("which job? JOB=its id, or IDS=a file of ids")
		}
		return json.Marshal(map[string]any{operator.ModeStop: selected})
	case kindBackfill:
		if len(ids) > 0 && file != "" {
			return nil, errors.New("FILE is the whole request; want it without JOB and IDS")
		}
		if len(ids) > 0 {
			return json.Marshal(map[string]any{operator.ModeBackfill: selected})
		}
		return readPayload(file, operator.ModeBackfill, stdin)
	}
	return readPayload(file, "idempotency_key", stdin)
}

// readPayload returns a file's content as it is. The field has to be in it.
func readPayload(path, field string, stdin io.Reader) ([]byte, error) {
	if path == "" {
		return nil, errors.New("which request? FILE=a file with its JSON, or FILE=- for standard input")
	}
	payload, err := readFile(path, stdin)
	if err != nil {
		return nil, err
	}
	if !utf8.Valid(payload) {
		return nil, fmt.Errorf("%s: not UTF-8", path)
	}
	var fields map[string]json.RawMessage
	if err := json.Unmarshal(payload, &fields); err != nil {
		return nil, fmt.Errorf("%s: not a JSON object: %w", path, err)
	}
	if _, ok := fields[field]; !ok {
		return nil, fmt.Errorf("%s: the field %q is missing", path, field)
	}
	return payload, nil
}

// jobIDs returns the ids of JOB and IDS.
func jobIDs(stdin io.Reader) ([]string, error) {
	var ids []string
	if job := os.Getenv("JOB"); job != "" {
		for id := range strings.SplitSeq(job, ",") {
			if id = strings.TrimSpace(id); id == "" {
				return nil, errors.New("JOB: an id is empty; want ids separated by commas")
			}
			ids = append(ids, id)
		}
	}
	path := os.Getenv("IDS")
	if path == "" {
		return ids, nil
	}
	text, err := readFile(path, stdin)
	if err != nil {
		return nil, err
	}
	column, err := firstColumn(text)
	if err == nil && len(column) == 0 {
		err = errors.New("no job id in it")
	}
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return append(ids, column...), nil
}

// firstColumn returns the first column of a CSV, which may be the only one. A
// heading job_id or id is left out.
func firstColumn(text []byte) ([]string, error) {
	if !utf8.Valid(text) {
		return nil, errors.New("not UTF-8")
	}
	rows := csv.NewReader(bytes.NewReader(bytes.TrimPrefix(text, []byte("\ufeff"))))
	rows.FieldsPerRecord, rows.LazyQuotes, rows.TrimLeadingSpace = -1, true, true
	var column []string
	for first := true; ; first = false {
		row, err := rows.Read()
		if errors.Is(err, io.EOF) {
			return column, nil
		}
		if err != nil {
			return nil, err
		}
		id := strings.TrimSpace(row[0])
		if id == "" || first && (id == "job_id" || id == "id") {
			continue
		}
		column = append(column, id)
	}
}

// readFile reads a file, or standard input for -.
func readFile(path string, stdin io.Reader) ([]byte, error) {
	if path == "-" {
		return io.ReadAll(stdin)
	}
	return os.ReadFile(path)
}
