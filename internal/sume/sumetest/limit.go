package sumetest

import (
	"math"
	"net/http"
	"slices"
	"strconv"
	"time"
)

// limits are the windows of one key and kind of request.
type limits struct{ minute, day window }

type window struct {
	limit, used int
	ends        time.Time
}

// open starts the window anew where it is over.
func (w *window) open(limit int, length time.Duration, now time.Time) {
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

// admit checks the key and the limits of a request, writes the limit's headers
// and returns 200, 401 or 429. The caller holds the lock.
func (a *API) admit(h http.Header, r *http.Request, perMinute, perDay int, kind string) int {
	k := key(r)
	if len(a.options.Keys) > 0 && !slices.Contains(a.options.Keys, k) || k == "" {
		a.refused++
		return http.StatusUnauthorized
	}
	if perMinute <= 0 && perDay <= 0 {
		return http.StatusOK
	}
	l := a.limits[kind+" "+k]
	if l == nil {
		l = &limits{}
		a.limits[kind+" "+k] = l
	}
	now := time.Now()
	minute := a.options.Minute
	if minute <= 0 {
		minute = time.Minute
	}
	l.minute.open(perMinute, minute, now)
	l.day.open(perDay, 24*time.Hour, now)
	active := &l.minute
	if l.day.left() < l.minute.left() {
		active = &l.day
	}
	if active.left() == 0 {
		a.limited++
		a.tell(h, active, now)
		h.Set("Retry-After", strconv.Itoa(seconds(active.ends.Sub(now))))
		return http.StatusTooManyRequests
	}
	l.minute.used++
	l.day.used++
	a.tell(h, active, now)
	return http.StatusOK
}

// tell writes the limit's headers in the spelling of the options.
func (a *API) tell(h http.Header, w *window, now time.Time) {
	prefix, reset := "RateLimit-", seconds(w.ends.Sub(now))
	switch a.options.Headers {
	case HeadersNone:
		return
	case HeadersX:
		prefix = "X-RateLimit-"
	case HeadersEpoch:
		reset += int(now.Unix())
	}
	h.Set(prefix+"Limit", strconv.Itoa(w.limit))
	h.Set(prefix+"Remaining", strconv.Itoa(w.left()))
	h.Set(prefix+"Reset", strconv.Itoa(reset))
}

func seconds(d time.Duration) int { return int(math.Ceil(d.Seconds())) }
