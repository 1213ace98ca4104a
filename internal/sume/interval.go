package sume

import (
	"bytes"
	"math"
	"regexp"
	"strconv"
	"time"
)

// maxWait bounds every duration that an answer asks for. The rules of
// internal/poller have lower bounds.
const maxWait = 365 * 24 * time.Hour

var decimal = regexp.MustCompile(`^[0-9]+(\.[0-9]+)?$`)

// interval reads next_poll_after_seconds: a number, or a string that holds a
// plain decimal number. It returns 0 for any other value and for a number that
// is not above zero.
func interval(value []byte) time.Duration {
	if isString(value) {
		if value = bytes.TrimSpace(unquote(value)); !decimal.Match(value) {
			return 0
		}
	}
	seconds, err := strconv.ParseFloat(string(value), 64)
	switch {
	case err != nil && !math.IsInf(seconds, 0), !(seconds > 0):
		return 0
	case seconds >= maxWait.Seconds():
		return maxWait
	}
	return max(1, time.Duration(seconds*float64(time.Second)))
}
