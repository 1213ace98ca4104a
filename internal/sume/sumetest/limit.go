package sumetest

import (
	"cmp"
	"math"
	"net/http"
	"slices"
	"strconv"
	"time"
)

// limits are the windows of one key.
type limits struct{ minute, day window }

type window struct {
	limit, used int
	ends        time.Time
}

// update starts a new window if the old one has ended.
func (w *window) update(limit int, length time.Duration, now time.Time) {
	if now.After(w.ends) {
		w.used, w.ends = 0, now.Add(length)
	}
	w.limit = limit
}

func (w *window) left() int {
	if w.limit <= 0 {
		return math.MaxInt
	}
	return max(w.limit-w.used, 0)
}

// authorized reports whether the key of a request is accepted. The caller holds
// the lock.
func (a *API) authorized(r *http.Request) bool {
	k := key(r)
	if k == "" || len(a.options.Keys) > 0 && !slices.Contains(a.options.Keys, k) {
		a.seen.Refused++
		return false
	}
	return true
}

// admit checks the key and the limits of a read, writes the limit's headers and
// returns 200, 401 or 429. The caller holds the lock.
func (a *API) admit(h http.Header, r *http.Request) int {
	o := a.options
	if !a.authorized(r) {
		return http.StatusUnauthorized
	}
	if o.ReadsPerMinute <= 0 && o.ReadsPerDay <= 0 {
		return http.StatusOK
	}
	l := a.limits[key(r)]
	if l == nil {
		l = &limits{}
		a.limits[key(r)] = l
	}
	now := time.Now()
	l.minute.update(o.ReadsPerMinute, cmp.Or(o.Minute, time.Minute), now)
	l.day.update(o.ReadsPerDay, 24*time.Hour, now)
	active := &l.minute
	if l.day.left() < l.minute.left() {
		active = &l.day
	}
	status := http.StatusOK
	if active.left() == 0 {
		a.seen.Limited++
		h.Set("Retry-After", strconv.Itoa(seconds(active.ends.Sub(now))))
		status = http.StatusTooManyRequests
	} else {
		l.minute.used++
		l.day.used++
	}
	prefix, reset := "RateLimit-", seconds(active.ends.Sub(now))
	switch o.Headers {
	case HeadersNone:
		return status
	case HeadersX:
		prefix = "X-RateLimit-"
	case HeadersEpoch:
		reset += int(now.Unix())
	}
	h.Set(prefix+"Limit", strconv.Itoa(active.limit))
	h.Set(prefix+"Remaining", strconv.Itoa(active.left()))
	h.Set(prefix+"Reset", strconv.Itoa(reset))
	return status
}

func seconds(d time.Duration) int { return int(math.Ceil(d.Seconds())) }
