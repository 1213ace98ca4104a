package submit

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"unicode/utf8"
)

// Request is one order.
type Request struct {
	Key    string // idempotency key, fit for a header
	Video  []byte // body of the post as it came: a JSON object with at least one field
	Resend bool   // post an intent that is too old, or was rejected for good, all the same
}

// Names of the payload's fields.
const (
	fieldKey    = "idempotency_key"
	fieldVideo  = "video"
	fieldResend = "resend"
)

// longestKey is the longest idempotency key taken, in bytes.
const longestKey = 255

// Parse reads the submitter's payload strictly: names by exact spelling, no
// name twice, nothing beside the object. Any error wraps ErrPayload and is one
// line that names the field.
func Parse(payload []byte) (Request, error) {
	fields, err := split(payload)
	if err != nil {
		return Request{}, fmt.Errorf("%w: %w", ErrPayload, err)
	}
	var r Request
	if r.Key, err = key(fields[fieldKey]); err != nil {
		return Request{}, fmt.Errorf("%w: %s: %w", ErrPayload, fieldKey, err)
	}
	if r.Video, err = video(fields[fieldVideo]); err != nil {
		return Request{}, fmt.Errorf("%w: %s: %w", ErrPayload, fieldVideo, err)
	}
	switch resend := string(fields[fieldResend]); resend {
	case "true":
		r.Resend = true
	case "", "false":
	default:
		return Request{}, fmt.Errorf("%w: %s: must be true or false", ErrPayload, fieldResend)
	}
	return r, nil
}

// split takes the payload's object apart; the values are its own bytes.
func split(payload []byte) (map[string]json.RawMessage, error) {
	if !utf8.Valid(payload) {
		return nil, errors.New("not valid UTF-8")
	}
	if !json.Valid(payload) {
		return nil, errors.New("not valid JSON")
	}
	dec := json.NewDecoder(bytes.NewReader(payload))
	if open, err := dec.Token(); err != nil || open != json.Delim('{') {
		return nil, fmt.Errorf("must be an object with %s and %s", fieldKey, fieldVideo)
	}
	fields := map[string]json.RawMessage{}
	for dec.More() {
		token, err := dec.Token()
		if err != nil {
			return nil, err
		}
		name := fmt.Sprint(token)
		if err := known(name); err != nil {
			return nil, err
		}
		if _, twice := fields[name]; twice {
			return nil, fmt.Errorf("%s: stands twice", name)
		}
		var value json.RawMessage
		if err := dec.Decode(&value); err != nil && !errors.Is(err, io.EOF) {
			return nil, err
		}
		fields[name] = value
	}
	return fields, nil
}

func known(name string) error {
	for _, field := range []string{fieldKey, fieldVideo, fieldResend} {
		switch {
		case name == field:
			return nil
		case strings.EqualFold(name, field):
			return fmt.Errorf("unknown field %q, spelled %s", name, field)
		}
	}
	return fmt.Errorf("unknown field %.64q", name)
}

func key(raw json.RawMessage) (string, error) {
	if raw == nil {
		return "", errors.New("missing")
	}
	var key string
	if raw[0] != '"' || json.Unmarshal(raw, &key) != nil {
		return "", errors.New("must be a string")
	}
	foreign := func(r rune) bool { return r < ' ' || r > '~' }
	switch {
	case strings.TrimSpace(key) == "":
		return "", errors.New("blank")
	case len(key) > longestKey:
		return "", fmt.Errorf("%d bytes long; at most %d", len(key), longestKey)
	case strings.ContainsFunc(key, foreign):
		return "", errors.New("only printable ASCII characters can go into the header")
	case key != strings.TrimSpace(key):
		return "", errors.New("begins or ends with a blank, which a header would lose")
	}
	return key, nil
}

func video(raw json.RawMessage) ([]byte, error) {
	switch {
	case raw == nil:
		return nil, errors.New("missing")
	case raw[0] != '{':
		return nil, errors.New("must be an object, the body of POST /v1/videos")
	case len(bytes.Trim(raw[1:len(raw)-1], " \t\r\n")) == 0:
		return nil, errors.New("empty")
	}
	return raw, nil
}
