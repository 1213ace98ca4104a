package submit

import (
	"strconv"
	"strings"
)

// Error returns status, code or reason, message and request id: the text that
// last_error keeps, without the message's URLs.
func (f *PostError) Error() string {
	return f.text(cut(f.Message))
}

// Brief returns Error's text without the API's message, for the log.
func (f *PostError) Brief() string { return f.text("") }

func (f *PostError) text(message string) string {
	var parts []string
	if f.HTTPStatus != 0 {
		parts = append(parts, "http "+strconv.Itoa(f.HTTPStatus))
	}
	for _, part := range []string{cut(f.Code), cut(f.Reason), message} {
		if part != "" {
			parts = append(parts, part)
		}
	}
	if f.RequestID != "" {
		parts = append(parts, "request_id="+cut(f.RequestID))
	}
	if len(parts) == 0 {
		return "no answer"
	}
	return strings.Join(parts, " ")
}

// longest is how much of one field of the API's answer is kept, in bytes.
const longest = 300

// cut makes a field of the API's answer fit for the table: valid text on one
// line, URLs taken out, no longer than longest.
func cut(s string) string {
	words := strings.FieldsFunc(strings.ToValidUTF8(s, "?"), func(r rune) bool {
		return r <= ' ' || r == 0x7f || r == '\u0085' || r == '\u2028' || r == '\u2029'
	})
	for i, word := range words {
		if strings.Contains(word, "://") {
			words[i] = "[url]"
		}
	}
	line := strings.Join(words, " ")
	if len(line) <= longest {
		return line
	}
	return strings.ToValidUTF8(line[:longest], "") + "…"
}
