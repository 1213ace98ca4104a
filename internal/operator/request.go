package operator

import (
	"bytes"
	"unicode/utf8"
)

// ParseRequest reads an invocation's payload. An empty one, null, {} and an
// event of EventBridge (from a rule or from Scheduler) are no operator request:
// they ask for a scheduled run, and the result is the zero Request.
// Everything else is taken to the letter or refused as a whole: the error is
// one line that begins with the field at fault.
func ParseRequest(payload []byte) (Request, error) {
	payload = bytes.TrimSpace(payload)
	if len(payload) == 0 || bytes.Equal(payload, []byte("null")) {
		return Request{}, nil
	}
	if !utf8.Valid(payload) {
		return Request{}, refuse("payload", "not UTF-8")
	}
	top, err := members("payload", payload)
	if err != nil {
		return Request{}, err
	}
	if len(top) == 0 {
		return Request{}, nil
	}
	if isEvent(top) {
		return parseEvent(top)
	}
	for _, m := range top {
		if m.name != ModeBackfill && m.name != ModeInspect && m.name != ModeStop {
			return Request{}, refuse(label(m.name), "unknown field; want one of backfill, inspect, stop")
		}
	}
	if len(top) > 1 {
		return Request{}, refuse(top[1].name, "stands beside "+top[0].name+"; send one at a time")
	}
	return parseByHand(top[0])
}

// isEvent tells an event of EventBridge by the two fields that each one has.
func isEvent(top []member) bool {
	has := 0
	for _, m := range top {
		if m.name == "source" || m.name == "detail-type" {
			has++
		}
	}
	return has == 2
}

// parseEvent takes an event for the schedule's pass. Work by hand inside one
// is a mistake that would else go unseen.
func parseEvent(top []member) (Request, error) {
	for _, m := range top {
		switch m.name {
		case "source", "detail-type":
			if _, err := text(m.name, m.value); err != nil {
				return Request{}, err
			}
		case ModeBackfill, ModeInspect, ModeStop:
			return Request{}, refuse(m.name, "stands inside an EventBridge event; send it alone")
		}
	}
	return Request{}, nil
}

func parseByHand(m member) (Request, error) {
	fields, err := members(m.name, m.value)
	if err != nil {
		return Request{}, err
	}
	r := Request{Mode: m.name}
	switch m.name {
	case ModeBackfill:
		r.Backfill, err = parseBackfill(fields)
	case ModeInspect:
		r.Inspect, err = parseInspect(fields)
	default:
		r.Stop, err = parseStop(fields)
	}
	if err != nil {
		return Request{}, err
	}
	return r, nil
}
