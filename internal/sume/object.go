package sume

import (
	"bytes"
	"encoding/json"
)

// object holds the fields of a JSON object that are read, as their JSON text.
// Names match exactly.
type object struct {
	value    [len(fields)][]byte // in the order of fields
	repeated bool                // a field that decides is in it twice
}

// fields lists the fields that are read. If one that decides is in an object
// twice, the answer is malformed.
var fields = [...]struct {
	name    string
	decides bool
}{
	{"terminal", true},
	{"sume_status", true},
	{"status", true},
	{"job", true},
	{"job_id", true},
	{"id", true},
	{"data", true},
	{"error", true},
	{"idempotency_hit", true},
	{"request_id", false},
	{"next_poll_after_seconds", false},
}

// get returns the JSON text of a field, or nil. The name is one of fields.
func (o *object) get(name string) []byte {
	for i := range fields {
		if fields[i].name == name {
			return o.value[i]
		}
	}
	return nil
}

// readObject reads the fields of an object; ok is false if text is none. The
// text is nil or valid JSON.
func readObject(text []byte) (o object, ok bool) {
	ok = eachMember(text, func(name, value []byte) {
		for i := range fields {
			if fields[i].name == string(name) {
				o.repeated = o.repeated || o.value[i] != nil && fields[i].decides
				o.value[i] = value
				return
			}
		}
	})
	return o, ok
}

// eachMember calls yield with the name and the JSON text of each member of an
// object. It returns false if text is no object. It relies on valid JSON.
func eachMember(text []byte, yield func(name, value []byte)) bool {
	const space = " \t\r\n"
	rest, isObject := bytes.CutPrefix(bytes.TrimLeft(text, space), []byte("{"))
	if !isObject {
		return false
	}
	for {
		if rest = bytes.TrimLeft(rest, space+","); rest[0] == '}' {
			return true
		}
		end := valueEnd(rest)
		name := unquote(rest[:end])
		rest = bytes.TrimLeft(rest[end:], space+":")
		end = valueEnd(rest)
		yield(name, rest[:end])
		rest = rest[end:]
	}
}

// valueEnd returns where the value that b begins with ends.
func valueEnd(b []byte) int {
	if b[0] != '"' && b[0] != '{' && b[0] != '[' {
		return bytes.IndexAny(b, ",]} \t\r\n")
	}
	for i, depth := 0, 0; ; i++ {
		switch b[i] {
		case '"':
			for i++; b[i] != '"'; i++ {
				if b[i] == '\\' {
					i++
				}
			}
		case '{', '[':
			depth++
		case '}', ']':
			depth--
		}
		if depth == 0 {
			return i + 1
		}
	}
}

// unquote returns the value of a JSON string.
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

// given reports whether a field is there and is not null.
func given(value []byte) bool { return len(value) > 0 && value[0] != 'n' }
