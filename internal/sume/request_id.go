package sume

import "strings"

// maxRequestID is the longest request id, in bytes.
const maxRequestID = 64

// requestID returns the answer's request id, from its body where isJSON says
// that there can be one, else from its header. It is fit for a log.
func (r *reply) requestID(isJSON bool, key string) string {
	if isJSON {
		if m, ok := readMembers(r.bytes()); ok && isString(m.requestID) {
			if id := plainID(string(unquote(m.requestID)), key); id != "" {
				return id
			}
		}
	}
	return plainID(r.header.Get("X-Request-Id"), key)
}

// plainID keeps printable ASCII without whitespace, and then only what is
// letters, digits and -_.: cut to its bound. What is left of a URL or of the
// key is no id, whatever stood between its letters.
func plainID(id, key string) string {
	id = strings.Map(func(r rune) rune {
		if r > ' ' && r <= '~' {
			return r
		}
		return -1
	}, id)
	foreign := func(r rune) bool {
		return !('a' <= r && r <= 'z' || 'A' <= r && r <= 'Z' || '0' <= r && r <= '9' || strings.ContainsRune("-_.:", r))
	}
	if strings.ContainsFunc(id, foreign) || scheme(id) || holdsKey(id, key) {
		return ""
	}
	return id[:min(len(id), maxRequestID)]
}
