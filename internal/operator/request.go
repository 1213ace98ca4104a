package operator

import (
	"bytes"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"unicode"

	"sumepoller/internal/strictjson"
)

// Request is one invocation's payload, checked. The field that Mode names is
// set and no other. The zero value is no operator request.
type Request struct {
	Mode     string
	Backfill *Backfill
	Inspect  *Inspect
	Stop     *Stop
}

// ParseRequest reads an invocation's payload. An empty one, null, {} and an
// event of EventBridge (from a rule or from Scheduler) ask for a scheduled run:
// the result is the zero Request. Everything else is an operator request or is
// refused as a whole. The error is one line that begins with the field.
func ParseRequest(payload []byte) (Request, error) {
	payload = bytes.Trim(payload, " \t\r\n")
	if len(payload) == 0 || string(payload) == "null" {
		return Request{}, nil
	}
	if isEvent, err := parseEvent(payload); isEvent {
		return Request{}, err
	}
	var fields struct {
		Backfill *backfillFields `json:"backfill"`
		Inspect  *inspectFields  `json:"inspect"`
		Stop     *Stop           `json:"stop"`
	}
	var e *strictjson.Error
	if err := strictjson.Unmarshal(payload, &fields); errors.As(err, &e) {
		if e.Field == "" {
			e.Field = "payload"
		}
		return Request{}, e
	}
	switch backfill, inspect, stop := fields.Backfill, fields.Inspect, fields.Stop; {
	case inspect != nil && backfill != nil:
		return Request{}, errors.New("inspect: given together with backfill; send one at a time")
	case stop != nil && (inspect != nil || backfill != nil):
		return Request{}, errors.New("stop: given together with another request; send one at a time")
	case backfill != nil:
		return backfill.request()
	case inspect != nil:
		return inspect.request()
	case stop != nil:
		return stop.request()
	}
	return Request{}, nil
}

// parseEvent recognizes an event of EventBridge by the two fields that each one
// has. An operator request inside an event is a mistake.
func parseEvent(payload []byte) (isEvent bool, err error) {
	var event struct {
		Source     string                    `json:"source"`
		DetailType string                    `json:"detail-type"`
		Others     map[string]strictjson.Raw `json:",embed"`
	}
	if strictjson.Unmarshal(payload, &event) != nil || event.Source == "" || event.DetailType == "" {
		return false, nil
	}
	for _, mode := range []string{ModeBackfill, ModeInspect, ModeStop} {
		if _, given := event.Others[mode]; given {
			return true, fmt.Errorf("%s: inside an EventBridge event; send it alone", mode)
		}
	}
	return true, nil
}

// distinctIDs checks job ids and returns each once, in their order.
func distinctIDs(field string, ids []string) ([]string, error) {
	return distinct(field, ids, func(id string) string {
		if id == "." || id == ".." {
			return "no job has this id"
		}
		return ""
	})
}

// distinct checks ids or states and returns each once, in their order. check
// returns what is wrong with one.
func distinct(field string, values []string, check func(string) string) ([]string, error) {
	kept := values[:0]
	seen := make(map[string]bool, len(values))
	for i, v := range values {
		problem := checkText(v)
		if problem == "" {
			problem = check(v)
		}
		if problem != "" {
			return nil, fmt.Errorf("%s[%d]: %s", field, i, problem)
		}
		if !seen[v] {
			seen[v] = true
			kept = append(kept, v)
		}
	}
	return kept, nil
}

// checkText returns what keeps a string from being an id or a state.
func checkText(s string) string {
	const longest = 512 // bytes
	switch {
	case strings.TrimSpace(s) == "":
		return "only whitespace"
	case len(s) > longest:
		return fmt.Sprintf("%d bytes long; at most %d", len(s), longest)
	case strings.ContainsFunc(s, unicode.IsControl):
		return "holds a control character"
	case strings.ContainsRune(s, unicode.ReplacementChar):
		return "holds U+FFFD, so its encoding was broken earlier"
	}
	return ""
}

// count is an integer that is at least 1 where it is given.
type count int

const maxCount = 1_000_000_000

func (c *count) UnmarshalJSON(number []byte) error {
	n, err := strconv.Atoi(string(number))
	if err != nil || n < 1 || n > maxCount {
		return fmt.Errorf("want an integer from 1 to %d, got %.20s", maxCount, number)
	}
	*c = count(n)
	return nil
}
