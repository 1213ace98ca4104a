package settings

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"slices"
	"strconv"
	"strings"
)

// reader collects the faults while values are taken out of the file's objects.
type reader struct{ faults Faults }

// add notes a fault of the key at path.
func (r *reader) add(path, what, want string) {
	r.faults = append(r.faults, fmt.Sprintf("%s: %s; want %s", path, what, want))
}

// object is one JSON object of the file. A key that is taken is crossed off;
// what is left at the end is unknown.
type object struct {
	*reader
	path   string // of the object, with a dot behind it; empty at the top
	values map[string]any
}

// top reads the file's outermost object. A key that occurs twice is a fault,
// since readers differ in which of the two they believe.
func (r *reader) top(data []byte) object {
	dec := json.NewDecoder(bytes.NewReader(data))
	dec.UseNumber()
	value, err := r.value(dec, "")
	if err == nil {
		if _, more := dec.Token(); more != io.EOF {
			err = fmt.Errorf("something follows the object")
		}
	}
	values, ok := value.(map[string]any)
	if err != nil || !ok {
		what := "the file is no JSON object"
		if err != nil {
			what = "the file is no JSON: " + err.Error()
		}
		r.faults = Faults{what + "; want one as in infra/examples"}
		return object{reader: r}
	}
	return object{reader: r, values: values}
}

func (r *reader) value(dec *json.Decoder, path string) (any, error) {
	token, err := dec.Token()
	if err == io.EOF {
		err = io.ErrUnexpectedEOF
	}
	if err != nil {
		return nil, err
	}
	switch token {
	case json.Delim('{'):
		return r.members(dec, path)
	case json.Delim('['):
		list := []any{}
		for dec.More() {
			item, err := r.value(dec, path)
			if err != nil {
				return nil, err
			}
			list = append(list, item)
		}
		_, err := dec.Token()
		return list, err
	}
	return token, nil
}

func (r *reader) members(dec *json.Decoder, path string) (any, error) {
	values := map[string]any{}
	for dec.More() {
		token, err := dec.Token()
		if err != nil {
			return nil, err
		}
		key := token.(string)
		if _, twice := values[key]; twice {
			r.add(path+key, "given twice", "it once")
		}
		if values[key], err = r.value(dec, path+key+"."); err != nil {
			return nil, err
		}
	}
	_, err := dec.Token()
	return values, err
}

// take crosses a key off and returns its value; ok is false where it is absent.
// A null is a value, and of no type that is wanted here.
func (o object) take(key string) (any, bool) {
	value, ok := o.values[key]
	delete(o.values, key)
	return value, ok
}

// rest reports the keys that nobody took.
func (o object) rest(want string) {
	for _, key := range slices.Sorted(maps.Keys(o.values)) {
		o.add(o.path+key, "unknown key", want)
	}
}

// child returns the object under key, or ok false where it is absent or none.
func (o object) child(key, want string) (object, bool) {
	value, ok := o.take(key)
	values, is := value.(map[string]any)
	if ok && !is {
		o.add(o.path+key, shown(value)+" is no object", want)
	}
	return object{reader: o.reader, path: o.path + key + ".", values: values}, is
}

// text returns the string under key where check accepts it; absent, it is empty
// and a fault only where it is needed.
func (o object) text(key string, needed bool, check func(string) bool, want string) string {
	value, ok := o.take(key)
	if !ok {
		if needed {
			o.add(o.path+key, "missing", want)
		}
		return ""
	}
	text, is := value.(string)
	if !is || !check(text) {
		o.add(o.path+key, shown(value)+" will not do", want)
		return ""
	}
	return text
}

// number returns the whole number under key, or fallback where it is absent.
func (o object) number(key string, fallback int, check func(int) bool, want string) int {
	value, ok := o.take(key)
	if !ok {
		return fallback
	}
	digits, _ := value.(json.Number)
	n, err := strconv.Atoi(digits.String())
	if err != nil || !check(n) {
		o.add(o.path+key, shown(value)+" will not do", want)
		return fallback
	}
	return n
}

// list returns the strings under key, all of which check accepts.
func (o object) list(key string, check func(string) bool, want string) []string {
	value, ok := o.take(key)
	if !ok {
		o.add(o.path+key, "missing", want)
		return nil
	}
	items, _ := value.([]any)
	texts := make([]string, 0, len(items))
	for _, item := range items {
		if text, is := item.(string); is && check(text) {
			texts = append(texts, text)
		}
	}
	if len(texts) == 0 || len(texts) < len(items) {
		o.add(o.path+key, shown(value)+" will not do", want)
		return nil
	}
	return texts
}

// shown returns a value as the file has it, cut short.
func shown(value any) string {
	text, err := json.Marshal(value)
	if err != nil {
		return "the value"
	}
	if runes := []rune(string(text)); len(runes) > 60 {
		return strings.TrimSpace(string(runes[:57])) + "..."
	}
	return string(text)
}
