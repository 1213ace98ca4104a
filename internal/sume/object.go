package sume

import (
	"bytes"
	"encoding/json"
)

// object walks the members of one JSON object without decoding them. It works
// on text that json.Valid has accepted and on nothing else, so it needs to know
// no more of the grammar than where a value ends.
type object struct {
	rest []byte
}

// openObject returns a walk over text, which may have blanks around it; ok is
// false where it is another kind of value.
func openObject(text []byte) (o object, ok bool) {
	text = skipBlanks(text)
	if len(text) == 0 || text[0] != '{' {
		return object{}, false
	}
	return object{rest: text[1:]}, true
}

// next returns a member's name, as its bytes spell it after unescaping, and
// its value's text without blanks around it.
func (o *object) next() (name, value []byte, ok bool) {
	rest := skipBlanks(o.rest)
	if len(rest) > 0 && rest[0] == ',' {
		rest = skipBlanks(rest[1:])
	}
	if len(rest) == 0 || rest[0] != '"' {
		return nil, nil, false
	}
	end := valueEnd(rest)
	name = unquote(rest[:end])
	rest = skipBlanks(rest[end:])
	rest = skipBlanks(rest[1:]) // the colon
	end = valueEnd(rest)
	o.rest = rest[end:]
	return name, rest[:end], true
}

func skipBlanks(b []byte) []byte {
	for len(b) > 0 && (b[0] == ' ' || b[0] == '\n' || b[0] == '\t' || b[0] == '\r') {
		b = b[1:]
	}
	return b
}

// valueEnd returns where the value that b begins with ends.
func valueEnd(b []byte) int {
	depth, quoted := 0, false
	for i := 0; i < len(b); i++ {
		switch c := b[i]; {
		case quoted && c == '\\':
			i++
		case c == '"':
			if quoted = !quoted; !quoted && depth == 0 {
				return i + 1
			}
		case quoted:
		case c == '{' || c == '[':
			depth++
		case c == '}' || c == ']':
			if depth == 0 { // the end of what holds a number or word
				return i
			}
			if depth--; depth == 0 {
				return i + 1
			}
		case depth == 0 && (c == ',' || c == ' ' || c == '\n' || c == '\t' || c == '\r'):
			return i
		}
	}
	return len(b)
}

// unquote returns what a JSON string holds. Without escapes it is a part of
// the text itself.
func unquote(text []byte) []byte {
	if bytes.IndexByte(text, '\\') < 0 {
		return text[1 : len(text)-1]
	}
	var s string
	if json.Unmarshal(text, &s) != nil {
		return nil
	}
	return []byte(s)
}

func isString(value []byte) bool { return len(value) > 0 && value[0] == '"' }

// given tells whether a member is there and is not null.
func given(value []byte) bool { return len(value) > 0 && value[0] != 'n' }
