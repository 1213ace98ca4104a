package operator

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

// encoding/json matches names whatever their case, takes the last of two equal
// ones and turns null into a zero value. A payload that changes rows is read
// to the letter instead, with the few functions below.

const (
	maxWordBytes = 512
	maxCount     = 1_000_000_000
)

// member is one field of an object: its name, and its value as it was sent.
type member struct {
	name  string
	value json.RawMessage
}

// refuse names the field at fault and what is wrong with it, on one line.
func refuse(field, fault string) error { return errors.New(field + ": " + fault) }

// label makes a field's name fit to stand in a line of an error.
func label(name string) string {
	const longest = 64
	if len(name) > longest {
		name = strings.ToValidUTF8(name[:longest], "") + "..."
	}
	quoted := strconv.QuoteToASCII(name)
	if plain := quoted[1 : len(quoted)-1]; plain == name && name != "" && !strings.ContainsAny(name, " .:") {
		return name
	}
	return quoted
}

// members reads an object, refusing a name that stands there twice.
func members(at string, raw []byte) ([]member, error) {
	d := json.NewDecoder(bytes.NewReader(raw))
	if err := open(at, d, '{', "an object", raw); err != nil {
		return nil, err
	}
	var all []member
	seen := map[string]struct{}{}
	for d.More() {
		key, err := d.Token()
		if err != nil {
			return nil, notJSON(at, err)
		}
		m := member{name: key.(string)} // between braces the decoder gives no other kind
		if err := d.Decode(&m.value); err != nil {
			return nil, notJSON(at, err)
		}
		if _, double := seen[m.name]; double {
			return nil, refuse(at, "holds "+label(m.name)+" twice")
		}
		seen[m.name] = struct{}{}
		all = append(all, m)
	}
	return all, closed(at, d)
}

// elements reads a list.
func elements(at string, raw []byte) ([]json.RawMessage, error) {
	d := json.NewDecoder(bytes.NewReader(raw))
	if err := open(at, d, '[', "a list", raw); err != nil {
		return nil, err
	}
	var all []json.RawMessage
	for d.More() {
		var item json.RawMessage
		if err := d.Decode(&item); err != nil {
			return nil, notJSON(at, err)
		}
		all = append(all, item)
	}
	return all, closed(at, d)
}

func open(at string, d *json.Decoder, want json.Delim, name string, raw []byte) error {
	token, err := d.Token()
	if err != nil {
		return notJSON(at, err)
	}
	if token != want {
		return refuse(at, "want "+name+", got "+kind(raw))
	}
	return nil
}

// closed reads the closing delimiter and makes sure that nothing follows it.
func closed(at string, d *json.Decoder) error {
	if _, err := d.Token(); err != nil {
		return notJSON(at, err)
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return refuse(at, "holds something after its end")
	}
	return nil
}

func notJSON(at string, err error) error {
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		return refuse(at, "is cut off JSON")
	}
	return refuse(at, "is not JSON: "+err.Error())
}

// kind names the JSON kind of a value, as a refusal tells it.
func kind(raw []byte) string {
	switch c := bytes.TrimSpace(raw)[0]; c {
	case '{':
		return "an object"
	case '[':
		return "a list"
	case '"':
		return "a text"
	case 't', 'f':
		return "true or false"
	case 'n':
		return "null"
	default:
		return "a number"
	}
}

func text(at string, raw []byte) (string, error) {
	if kind(raw) != "a text" {
		return "", refuse(at, "want a text, got "+kind(raw))
	}
	var s string
	if err := json.Unmarshal(raw, &s); err != nil {
		return "", notJSON(at, err)
	}
	return s, nil
}

func truth(at string, raw []byte) (bool, error) {
	if kind(raw) != "true or false" {
		return false, refuse(at, "want true or false, got "+kind(raw))
	}
	return raw[0] == 't', nil
}

// count reads a whole number from 1 on, written in digits.
func count(at string, raw []byte) (int, error) {
	if kind(raw) != "a number" {
		return 0, refuse(at, "want a number, got "+kind(raw))
	}
	n, err := strconv.ParseInt(string(raw), 10, 64)
	switch {
	case raw[0] == '-' || bytes.HasPrefix(raw, []byte("0")):
		return 0, refuse(at, "must be at least 1")
	case errors.Is(err, strconv.ErrRange) || err == nil && n > maxCount:
		return 0, refuse(at, fmt.Sprintf("must be at most %d", maxCount))
	case err != nil:
		return 0, refuse(at, "must be a whole number, written in digits")
	}
	return int(n), nil
}

// word refuses what can be neither an id nor a state. A lone surrogate reads
// as U+FFFD, so that another id than the one sent would be meant.
func word(at, s string) error {
	switch {
	case strings.TrimSpace(s) == "":
		return refuse(at, "blank")
	case len(s) > maxWordBytes:
		return refuse(at, fmt.Sprintf("%d bytes long; at most %d", len(s), maxWordBytes))
	case strings.ContainsFunc(s, unicode.IsControl):
		return refuse(at, "holds a control character")
	case strings.ContainsRune(s, utf8.RuneError):
		return refuse(at, "holds half a surrogate pair, or U+FFFD")
	}
	return nil
}
