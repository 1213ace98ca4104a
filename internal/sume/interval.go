package sume

import (
	"bytes"
	"math"
	"net/http"
	"strconv"
	"strings"
	"time"
)

// maxWait bounds every span that an answer asks for; the rules bound it
// further.
const maxWait = 365 * 24 * time.Hour

// maxCount bounds a header's figure: as seconds it fits a time.Duration.
const maxCount = 9_000_000_000

// interval reads the text of next_poll_after_seconds: a number, or a string
// that holds a plain decimal one. It returns 0 for everything else, and for
// what is not above zero.
func interval(value []byte) time.Duration {
	if isString(value) {
		value = bytes.TrimSpace(unquote(value))
		if !plainDecimal(value) {
			return 0
		}
	}
	if len(value) == 0 {
		return 0
	}
	seconds, err := strconv.ParseFloat(string(value), 64)
	if err != nil && !math.IsInf(seconds, 0) || seconds <= 0 || math.IsNaN(seconds) {
		return 0
	}
	if seconds >= maxWait.Seconds() {
		return maxWait
	}
	return max(1, time.Duration(seconds*float64(time.Second)))
}

// plainDecimal tells whether text is digits, with at most one point between
// them.
func plainDecimal(text []byte) bool {
	whole, fraction, point := bytes.Cut(text, []byte("."))
	return digits(string(whole)) && (!point || digits(string(fraction)))
}

func digits(s string) bool {
	return s != "" && strings.Trim(s, "0123456789") == ""
}

// count reads a header of digits; ok is false where there is none, or anything
// else. What no int holds is bounded.
func count(h http.Header, name string) (n int, ok bool) {
	values := h[name]
	if len(values) != 1 || !digits(values[0]) {
		return 0, false
	}
	n, err := strconv.Atoi(values[0])
	if err != nil || n > maxCount {
		return maxCount, true
	}
	return n, true
}

// retryAfter reads how long an answer asks to wait: whole seconds, or a date
// that is measured against the answer's own. It is negative where the answer
// does not ask, in one header of either form.
func retryAfter(h http.Header) time.Duration {
	const none = -1
	if values := h["Retry-After"]; len(values) != 1 {
		return none
	}
	if seconds, ok := count(h, "Retry-After"); ok {
		return min(time.Duration(seconds)*time.Second, maxWait)
	}
	until, err := http.ParseTime(h.Get("Retry-After"))
	if err != nil {
		return none
	}
	now, err := http.ParseTime(h.Get("Date"))
	if err != nil {
		return none
	}
	return min(max(until.Sub(now), 0), maxWait)
}

// age reads how long a cache has kept the answer, 0 where no cache says so. Of
// several values, as of several caches, the first is the answer's.
func age(h http.Header) time.Duration {
	first, _, _ := strings.Cut(h.Get("Age"), ",")
	seconds, ok := count(http.Header{"Age": {strings.TrimSpace(first)}}, "Age")
	if !ok {
		return 0
	}
	return min(time.Duration(seconds)*time.Second, maxWait)
}
