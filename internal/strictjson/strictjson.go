// Package strictjson decodes JSON that a person or a program wrote for this
// product. It says in one line what is wrong, beginning with the field.
//
// It is stricter than encoding/json: names match exactly, and an unknown field,
// a field given twice, null, an empty string and anything after the value are
// errors.
package strictjson

import (
	"bytes"
	"errors"
	"reflect"
	"time"
	"unicode/utf8"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

var (
	strict = json.JoinOptions(
		json.RejectUnknownMembers(true),
		json.WithUnmarshalers(json.UnmarshalFromFunc(checkKind)),
	)
	lenient = json.JoinOptions(jsontext.AllowDuplicateNames(true), jsontext.AllowInvalidUTF8(true))
)

// Unmarshal decodes data into v, a pointer to a struct. Its fields' types may
// check their values in UnmarshalJSON. The error is an *Error, the first in
// data; v is then incomplete.
func Unmarshal(data []byte, v any) error {
	switch {
	case len(bytes.Trim(data, " \t\r\n")) == 0:
		return &Error{Problem: "empty; want JSON"}
	case !utf8.Valid(data):
		return &Error{Problem: "not UTF-8"}
	}
	if err := json.Unmarshal(data, v, strict); err != nil {
		return newError(err)
	}
	return nil
}

// UnmarshalAll is Unmarshal for a small file: it returns all errors. v gets the
// fields without an error. Data that is not a JSON object is one error, without
// a field.
func UnmarshalAll(data []byte, v any) []*Error {
	var all []*Error
	var e *Error
	if errors.As(Unmarshal(data, new(Raw)), &e) {
		return []*Error{e}
	}
	for errors.As(Unmarshal(data, v), &e) {
		all = append(all, e)
		if e.member == "" {
			break
		}
		data = without(data, e.member)
	}
	return all
}

// without returns JSON less one member of an object, wherever it is given.
func without(data []byte, member jsontext.Pointer) []byte {
	var rest bytes.Buffer
	in, out := jsontext.NewDecoder(bytes.NewReader(data), lenient), jsontext.NewEncoder(&rest, lenient)
	for {
		token, err := in.ReadToken()
		switch {
		case err != nil:
			return rest.Bytes()
		case in.StackPointer() == member:
			_ = in.SkipValue()
		default:
			_ = out.WriteToken(token)
		}
	}
}

// Raw is a JSON value, verbatim. Inside it nothing but the syntax is checked.
type Raw []byte

// UnmarshalJSONFrom keeps the next value. An error names the value, and nothing
// that is inside it.
func (r *Raw) UnmarshalJSONFrom(in *jsontext.Decoder) error {
	at := in.StackPointer()
	err := json.UnmarshalDecode(in, (*jsontext.Value)(r), lenient, json.WithUnmarshalers(nil))
	var syntax *jsontext.SyntacticError
	if errors.As(err, &syntax) {
		syntax.JSONPointer = at
	}
	return err
}

// checkKind refuses a value of another kind than v's type needs; the library
// takes null for every type. It leaves the decoding to the library.
func checkKind(in *jsontext.Decoder, v any) error {
	want, got := kindOf(reflect.TypeOf(v).Elem()), kindNames[in.PeekKind()]
	text, isString := v.(*string)
	switch {
	case want == "" || got == "" || got == "a number" && want == "an integer" || got == want && !isString:
		return errors.ErrUnsupported
	case got != want:
		if err := in.SkipValue(); err != nil {
			return err
		}
		return &json.SemanticError{JSONPointer: in.StackPointer(), Err: errors.New("want " + want + ", got " + got)}
	}
	token, err := in.ReadToken()
	if err != nil {
		return err
	}
	if *text = token.String(); *text == "" {
		return &json.SemanticError{JSONPointer: in.StackPointer(), Err: errors.New("want a string, got an empty one")}
	}
	return nil
}

var kindNames = map[jsontext.Kind]string{
	jsontext.KindNull:        "null",
	jsontext.KindFalse:       "a boolean",
	jsontext.KindTrue:        "a boolean",
	jsontext.KindNumber:      "a number",
	jsontext.KindString:      "a string",
	jsontext.KindBeginArray:  "an array",
	jsontext.KindBeginObject: "an object",
}

var (
	timeType = reflect.TypeFor[time.Time]()
	rawType  = reflect.TypeFor[Raw]()
)

// kindOf names the kind of JSON value that a type needs; it is empty for Raw.
func kindOf(t reflect.Type) string {
	if t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	switch {
	case t == rawType:
		return ""
	case t == timeType:
		return "a string"
	}
	switch t.Kind() {
	case reflect.Bool:
		return "a boolean"
	case reflect.Int:
		return "an integer"
	case reflect.String:
		return "a string"
	case reflect.Slice:
		return "an array"
	}
	return "an object"
}
