package sume

import "strings"

// maxRequestID is the longest request id that is kept, in bytes.
const maxRequestID = 64

// requestID returns the answer's request id, from its body where isJSON says
// that there can be one, else from its header. It is made fit for a log.
func (r *reply) requestID(isJSON bool, key string) string {
	if isJSON {
		if m, ok := readMembers(r.bytes()); ok && isString(m.requestID) {
			if id := cleanID(string(unquote(m.requestID)), key); id != "" {
				return id
			}
		}
	}
	return cleanID(r.header.Get("X-Request-Id"), key)
}

// cleanID keeps printable ASCII without blanks, cut to its bound. What holds
// a URL or the key is no id.
func cleanID(id, key string) string {
	if strings.Contains(id, "://") || key != "" && strings.Contains(id, key) {
		return ""
	}
	var kept strings.Builder
	for i := 0; i < len(id) && kept.Len() < maxRequestID; i++ {
		if id[i] > ' ' && id[i] <= '~' {
			kept.WriteByte(id[i])
		}
	}
	return kept.String()
}
