package jobs

import (
	"strconv"
	"strings"
	"unicode/utf16"
	"unicode/utf8"
)

// cleanText returns a string that PostgreSQL accepts: valid UTF-8 without NUL.
func cleanText(s string) string {
	if utf8.ValidString(s) && !strings.ContainsRune(s, 0) {
		return s
	}
	return strings.ReplaceAll(strings.ToValidUTF8(s, "\ufffd"), "\x00", "\ufffd")
}

// cleanJSON returns JSON that jsonb accepts: valid UTF-8, with replacement
// characters for the escapes of NUL and of unpaired surrogates, which JSON allows
// and jsonb does not.
func cleanJSON(body []byte) string {
	text := cleanText(string(body))
	var out strings.Builder
	kept := 0 // text up to here is in out
	for i := 0; i < len(text); {
		at := strings.IndexByte(text[i:], '\\')
		if at < 0 {
			break
		}
		i += at
		unit, ok := escape(text[i:])
		switch {
		case !ok: // another escape, such as \\
			i += 2
			continue
		case utf16.IsSurrogate(unit):
			if low, ok := escape(text[i+6:]); ok && utf16.DecodeRune(unit, low) != utf8.RuneError {
				i += 12
				continue
			}
		case unit != 0:
			i += 6
			continue
		}
		out.WriteString(text[kept:i])
		out.WriteString(`\ufffd`)
		i += 6
		kept = i
	}
	if kept == 0 {
		return text
	}
	out.WriteString(text[kept:])
	return out.String()
}

// escape reads the \uXXXX that s begins with.
func escape(s string) (rune, bool) {
	if len(s) < 6 || s[0] != '\\' || s[1] != 'u' {
		return 0, false
	}
	unit, err := strconv.ParseUint(s[2:6], 16, 16)
	return rune(unit), err == nil
}
