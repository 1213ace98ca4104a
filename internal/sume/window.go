package sume

import (
	"net/http"
	"time"

	"sumepoller/internal/poller"
)

// epoch is the value from which on a reset is a point in time rather than
// seconds from now.
const epoch = 1_000_000_000

// Spellings of the headers that tell the limit, in the canonical form that
// net/http keeps them in.
var spellings = [2]struct{ limit, remaining, reset string }{
	{"Ratelimit-Limit", "Ratelimit-Remaining", "Ratelimit-Reset"},
	{"X-Ratelimit-Limit", "X-Ratelimit-Remaining", "X-Ratelimit-Reset"},
}

// window reads what an answer's headers tell of the server's limit; nil where
// they do not tell how many requests are left. Odd values count as not told.
func window(h http.Header) *poller.Window {
	for _, name := range spellings {
		remaining, ok := count(h, name.remaining)
		if !ok {
			continue
		}
		w := &poller.Window{Remaining: remaining, Reset: reset(h, name.reset)}
		w.Limit, _ = count(h, name.limit)
		return w
	}
	return nil
}

// reset returns the time until the window ends, 0 where it is not told. A
// window that ends right now ends within a second: the headers know no less.
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
