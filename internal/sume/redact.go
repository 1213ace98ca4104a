package sume

import (
	"net/url"
	"strings"
	"unicode"
)

// maxMessage is how much of an error's code or message is kept, in bytes.
const maxMessage = 1000

// redact makes a text of the API's fit for people: visible characters on one
// line, without URLs, the key and whatever is one of them in disguise.
func redact(text []byte, key string) string {
	s := strings.Map(visible, strings.ToValidUTF8(string(text), ""))
	if key != "" {
		s = strings.ReplaceAll(s, key, "[key]")
	}
	if holdsKey(s, key) {
		return "[key]"
	}
	words := strings.Fields(s)
	for i, word := range words {
		if addresses(word) {
			words[i] = "[url]"
		}
	}
	if s = strings.Join(words, " "); len(s) > maxMessage {
		s = strings.ToValidUTF8(s[:maxMessage], "")
	}
	return s
}

// visible drops characters that show nothing, and makes each that is as wide as
// two the ASCII one that it looks like.
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

// addresses reports whether a word can be a URL or a part of one, also one that
// is escaped, once or more.
func addresses(word string) bool {
	for range 4 {
		inner := strings.Trim(word, `.,;:!?'"()[]{}<>`)
		path, query := strings.ContainsAny(inner, `/\`), strings.ContainsAny(inner, "?&=")
		switch {
		case scheme(word), strings.Contains(word, "//"), path && (query || strings.Contains(inner, ".")),
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

// scheme reports whether a text holds the beginning of a URL.
func scheme(s string) bool {
	s = strings.ToLower(s)
	return strings.Contains(s, "http:") || strings.Contains(s, "https:") || strings.Contains(s, ":/") || strings.Contains(s, `:\`)
}

// holdsKey reports whether a text holds the key, whatever its letters' case and
// what stands between them.
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
