package sume

import (
	"net/http"
	"strconv"
	"strings"
	"time"

	"sumepoller/internal/poller"
)

const (
	// maxCount bounds a number in a header, so that it fits a time.Duration.
	maxCount = 9_000_000_000
	// A reset above epoch is a Unix time, and otherwise seconds from now.
	epoch = 1_000_000_000
)

// window reads the minute limit from an answer's headers. It is nil if they do
// not say how many requests are left. A value that is no number is ignored.
func window(h http.Header) *poller.Window {
	for _, prefix := range []string{"Ratelimit-", "X-Ratelimit-"} {
		if remaining, ok := count(h, prefix+"Remaining"); ok {
			limit, _ := count(h, prefix+"Limit")
			return &poller.Window{Limit: limit, Remaining: remaining, Reset: reset(h, prefix+"Reset")}
		}
	}
	return nil
}

// reset returns the time until the window ends, or 0 if it is unknown. It is at
// least a second, since the header has no more precision.
func reset(h http.Header, name string) time.Duration {
	n, ok := count(h, name)
	if !ok {
		return 0
	}
	in := time.Duration(n) * time.Second
	if n > epoch {
		now, err := http.ParseTime(h.Get("Date"))
		if err != nil {
			return 0
		}
		in = time.Unix(int64(n), 0).Sub(now)
	}
	if in > maxWait {
		return 0
	}
	return max(in, time.Second)
}

// retryAfter reads how long an answer asks to wait: seconds, or a date, which is
// compared with the answer's own date. It is negative if the answer does not ask
// or the header is invalid or repeated.
func retryAfter(h http.Header) time.Duration {
	if len(h["Retry-After"]) != 1 {
		return -1
	}
	if seconds, ok := count(h, "Retry-After"); ok {
		return min(time.Duration(seconds)*time.Second, maxWait)
	}
	until, err := http.ParseTime(h.Get("Retry-After"))
	if err != nil {
		return -1
	}
	now, err := http.ParseTime(h.Get("Date"))
	if err != nil {
		return -1
	}
	return min(max(until.Sub(now), 0), maxWait)
}

// age reads how long a cache has kept the answer, or 0 if no cache did. If
// several caches set the header, the first value is the answer's.
func age(h http.Header) time.Duration {
	first, _, _ := strings.Cut(h.Get("Age"), ",")
	seconds, _ := count(http.Header{"Age": {strings.TrimSpace(first)}}, "Age")
	return min(time.Duration(seconds)*time.Second, maxWait)
}

// count reads a header that holds only digits, up to maxCount; ok is false for
// any other value and for a repeated header.
func count(h http.Header, name string) (n int, ok bool) {
	values := h[name]
	if len(values) != 1 || values[0] == "" || strings.Trim(values[0], "0123456789") != "" {
		return 0, false
	}
	n, err := strconv.Atoi(values[0])
	if err != nil || n > maxCount {
		return maxCount, true
	}
	return n, true
}
