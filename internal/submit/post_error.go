package submit

import (
	"strconv"
	"strings"
)

// Error returns status, code or reason, message without URLs, and request id.
// last_error holds this string.
func (e *PostError) Error() string {
	return e.join(oneLine(e.Message))
}

// Brief returns Error's string without the API's message, for the log.
func (e *PostError) Brief() string { return e.join("") }

func (e *PostError) join(message string) string {
	var parts []string
	if e.HTTPStatus != 0 {
		parts = append(parts, "http "+strconv.Itoa(e.HTTPStatus))
	}
	for _, part := range []string{oneLine(e.Code), oneLine(e.Reason), message} {
		if part != "" {
			parts = append(parts, part)
		}
	}
	if e.RequestID != "" {
		parts = append(parts, "request_id="+oneLine(e.RequestID))
	}
	if len(parts) == 0 {
		return "no answer"
	}
	return strings.Join(parts, " ")
}

// oneLine makes a field of an answer fit for the table: valid UTF-8 on one line,
// without URLs, at most 300 bytes long.
func oneLine(s string) string {
	const longest = 300
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
