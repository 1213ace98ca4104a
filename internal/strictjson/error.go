package strictjson

import (
	"errors"
	"fmt"
	"io"
	"reflect"
	"strconv"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// Error is one thing that is wrong with the JSON, on one line.
type Error struct {
	Field   string // such as backfill.job_ids[3]; empty: the JSON as a whole
	Problem string

	member jsontext.Pointer // the innermost named field; empty where data cannot be read on
}

func (e *Error) Error() string {
	if e.Field == "" {
		return e.Problem
	}
	return e.Field + ": " + e.Problem
}

// newError translates an error of the library.
func newError(err error) *Error {
	var syntax *jsontext.SyntacticError
	var value *json.SemanticError
	switch {
	case errors.Is(err, io.ErrUnexpectedEOF):
		return &Error{Problem: "the JSON is cut off"}
	case errors.As(err, &syntax) && errors.Is(err, jsontext.ErrDuplicateName):
		return newMemberError(syntax.JSONPointer, "given twice")
	case errors.As(err, &syntax):
		return &Error{Field: fieldName(syntax.JSONPointer), Problem: fmt.Sprintf("not JSON: %v (byte offset %d)", syntax.Err, syntax.ByteOffset)}
	case errors.As(err, &value) && errors.Is(err, json.ErrUnknownName):
		return newMemberError(value.JSONPointer, "unknown field; want "+fieldList(value.GoType))
	case errors.As(err, &value):
		e := &Error{Field: fieldName(value.JSONPointer), Problem: problem(value), member: value.JSONPointer}
		for isIndex(e.member.LastToken()) {
			e.member = e.member.Parent()
		}
		return e
	}
	return &Error{Problem: err.Error()}
}

// newMemberError is an error of a name, so that the pointer ends with a name
// although it may look like an index.
func newMemberError(at jsontext.Pointer, problem string) *Error {
	field := label(at.LastToken())
	if parent := fieldName(at.Parent()); parent != "" {
		field = parent + "." + field
	}
	return &Error{Field: field, Problem: problem, member: at}
}

func problem(e *json.SemanticError) string {
	switch {
	case errors.Is(e.Err, strconv.ErrSyntax), errors.Is(e.Err, strconv.ErrRange):
		return fmt.Sprintf("want an integer, got %.20s", e.JSONValue)
	case e.GoType == timeType:
		return "want a time of RFC 3339, such as 2026-11-01T00:00:00Z"
	}
	return e.Err.Error()
}

// fieldName writes a pointer as a person writes a field.
func fieldName(at jsontext.Pointer) string {
	const longest = 100 // bytes, but for the last name
	var b strings.Builder
	for token := range at.Tokens() {
		switch {
		case b.Len() > longest:
			return b.String() + "..."
		case isIndex(token):
			b.WriteString("[" + token + "]")
			continue
		case b.Len() > 0:
			b.WriteByte('.')
		}
		b.WriteString(label(token))
	}
	return b.String()
}

func isIndex(token string) bool {
	_, err := strconv.ParseUint(token, 10, 64)
	return err == nil
}

// label makes a name fit for one line. It is quoted where it would be read as
// something else.
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

// fieldList names the fields of a struct: a, b or c.
func fieldList(t reflect.Type) string {
	var names []string
	for _, f := range reflect.VisibleFields(t) {
		if name, _, _ := strings.Cut(f.Tag.Get("json"), ","); name != "" && name != "-" {
			names = append(names, name)
		}
	}
	last := len(names) - 1
	if last < 1 {
		return strings.Join(names, "")
	}
	return strings.Join(names[:last], ", ") + " or " + names[last]
}
