package sume

import "strings"

// bought reads the accepted post's answer: the job's id, empty where it names
// no usable one, and whether the API had the idempotency key already.
func bought(body []byte, isJSON bool) (jobID string, hit bool) {
	if !isJSON {
		return "", false
	}
	outer, ok := readMembers(body)
	if !ok {
		return "", false
	}
	inner, _ := readMembers(outer.data)
	innerJob, _ := readMembers(inner.job)
	outerJob, _ := readMembers(outer.job)
	hit = string(inner.hit) == "true" || string(outer.hit) == "true"
	for _, value := range [][]byte{
		inner.jobID, innerJob.id, inner.id,
		outer.jobID, outerJob.id, outer.id,
		inner.requestID, outer.requestID,
	} {
		if id := text(value); id != "" {
			if !validID(id) || strings.ContainsRune(id, 0xFFFD) {
				return "", hit
			}
			return id, hit
		}
	}
	return "", hit
}

// text returns what a string holds, or how a number is written; everything
// else is no text.
func text(value []byte) string {
	switch {
	case isString(value):
		return string(unquote(value))
	case len(value) > 0 && value[0] >= '0' && value[0] <= '9':
		return string(value)
	}
	return ""
}

// refusal reads the code and message of an error's body, redacted.
func refusal(body []byte, key string) (code, message string) {
	m, ok := readMembers(body)
	if !ok {
		return "", ""
	}
	if isString(m.failure) {
		return "", redact(unquote(m.failure), key)
	}
	walk, ok := openObject(m.failure)
	for ok {
		var name, value []byte
		if name, value, ok = walk.next(); !ok || !isString(value) {
			continue
		}
		switch string(name) {
		case "code":
			code = redact(unquote(value), key)
		case "message":
			message = redact(unquote(value), key)
		}
	}
	return code, message
}
