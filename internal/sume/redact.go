package sume

import (
	"net/url"
	"regexp"
	"strings"
	"unicode"
)

const (
	maxMessage   = 1000 // bytes of an error's code or message that are kept
	maxRequestID = 64   // bytes of a request id that are kept
)

// redact makes a string from the API safe to show: visible characters on one
// line, without URLs, without the key, and without either of them in another
// spelling.
func redact(raw []byte, key string) string {
	s := strings.Map(visible, strings.ToValidUTF8(string(raw), ""))
	if key != "" {
		s = strings.ReplaceAll(s, key, "[key]")
	}
	if holdsKey(s, key) {
		return "[key]"
	}
	words := strings.Fields(s)
	for i, word := range words {
		if holdsURL(word) {
			words[i] = "[url]"
		}
	}
	if s = strings.Join(words, " "); len(s) > maxMessage {
		s = strings.ToValidUTF8(s[:maxMessage], "")
	}
	return s
}

// visible drops invisible characters, and turns full-width ones into ASCII.
func visible(r rune) rune {
	switch {
	case unicode.IsSpace(r):
		return ' '
	case !unicode.IsPrint(r), unicode.In(r, unicode.Other_Default_Ignorable_Code_Point, unicode.Variation_Selector):
		return -1
	case '\uff01' <= r && r <= '\uff5e':
		return r - '\uff01' + '!'
	}
	return r
}

// holdsURL reports whether a word can be a URL or a part of one, also one that
// is percent-encoded, once or more.
func holdsURL(word string) bool {
	for range 4 {
		inner := strings.Trim(word, `.,;:!?'"()[]{}<>`)
		path, query := strings.ContainsAny(inner, `/\`), strings.ContainsAny(inner, "?&=")
		switch {
		case holdsScheme(word), strings.Contains(word, "//"), path && (query || strings.Contains(inner, ".")),
			strings.Contains(inner, "=") && strings.ContainsAny(word, "?&"):
			return true
		}
		plain, err := url.PathUnescape(word)
		if err != nil || plain == word {
			break
		}
		word = strings.Map(visible, plain)
	}
	return false
}

var schemes = regexp.MustCompile(`(?i)https?:|:[/\\]`)

// holdsScheme reports whether a string holds the beginning of a URL.
func holdsScheme(s string) bool { return schemes.MatchString(s) }

// holdsKey reports whether a string holds the key, in upper or lower case and
// with any separators.
func holdsKey(s, key string) bool {
	key = alphanumeric(key)
	return key != "" && strings.Contains(alphanumeric(s), key)
}

func alphanumeric(s string) string {
	return strings.Map(func(r rune) rune {
		if unicode.IsLetter(r) || unicode.IsDigit(r) {
			return unicode.ToLower(r)
		}
		return -1
	}, s)
}

// requestID returns the request id of a response, from its body if that is JSON
// and has one, otherwise from its header. It is safe to log.
func (r *response) requestID(isJSON bool, key string) string {
	if isJSON {
		body, _ := readObject(r.bytes())
		if value := body.get("request_id"); isString(value) {
			if id := safeID(string(unquote(value)), key); id != "" {
				return id
			}
		}
	}
	return safeID(r.header.Get("X-Request-Id"), key)
}

var idCharacters = regexp.MustCompile(`^[a-zA-Z0-9_.:-]+$`)

// safeID drops whitespace and everything beyond ASCII from an id and cuts it to
// its maximum. It returns "" if the rest is no id or can hold a URL or the key.
func safeID(id, key string) string {
	id = strings.Map(func(r rune) rune {
		if r > ' ' && r <= '~' {
			return r
		}
		return -1
	}, id)
	if !idCharacters.MatchString(id) || holdsScheme(id) || holdsKey(id, key) {
		return ""
	}
	return id[:min(len(id), maxRequestID)]
}
