package poller

import (
	"math"
	"time"
)

const (
	// As long as no answer of a run has stated the API's limit, at most
	// probeFew reads are in flight. A read that has been in flight for
	// probeSlow does not count: a few slow answers must not delay the rest.
	probeFew  = 8
	probeSlow = time.Second
)

// minuteLimit is the number of reads allowed in a minute: by the sandbox's own
// limit, over any 60 s, and by the API's limit, from its answers. A warm sandbox
// keeps it from run to run, so it holds wall-clock times, which go on while the
// sandbox is frozen.
type minuteLimit struct {
	perMinute int         // the sandbox's own limit; 0: none
	inFlight  int         // reads in flight
	ends      []time.Time // of the reads of the last minute, oldest first

	known        bool        // an answer of this run has shown the API's limit, or that it has none
	limited      bool        // the API allows only remaining until reset
	remaining    int         // from the answer, reads in flight not subtracted
	reset        time.Time   // end of that window
	probes       []time.Time // starts of the reads that began while not known: the first, and those of the last probeSlow
	blockedUntil time.Time   // after an answer of 429, no read starts before

	checkedAt time.Time // of the last call of allow
}

// start prepares the limit for a run. The API's limit is not known then, since
// other sandboxes may have read meanwhile.
func (m *minuteLimit) start() {
	m.inFlight = 0
	m.known = false
	m.probes = nil
}

// unblock drops the pause after an answer of 429, which can be hours.
func (m *minuteLimit) unblock() { m.blockedUntil = time.Time{} }

// begin records that a read starts.
func (m *minuteLimit) begin(now time.Time) {
	m.inFlight++
	if !m.known {
		m.probes = append(m.probes, now.Round(0))
	}
}

// end records that a read has ended, with or without an answer. A read counts
// until a minute after its end, because the API saw it somewhere in between.
func (m *minuteLimit) end(now time.Time) {
	m.inFlight--
	if m.perMinute > 0 {
		m.ends = append(m.ends, now.Round(0))
	}
}

// update takes the limit that an answer's headers give. A nil window means that
// the API sets no limit.
func (m *minuteLimit) update(now time.Time, w *Window) {
	const sameWindow = 2 * time.Second // how far apart two answers may put the end of the same window
	now = now.Round(0)
	if w == nil {
		if !m.known {
			m.limited = false
		}
		m.known = true
		return
	}
	m.known = true
	reset := now.Add(min(max(w.Reset, time.Second), retryAfterMax))
	shorter := reset.Before(m.reset.Add(-sameWindow))
	longer := reset.After(m.reset.Add(sameWindow))
	fewer := w.Remaining < m.remaining
	switch {
	case !m.limited || !now.Before(m.reset) || longer || shorter && fewer:
		// The first window, a longer one, or a shorter one with less left: it
		// is the one that limits. After its end the limit is unknown again.
		m.limited, m.remaining, m.reset = true, w.Remaining, reset
	case shorter:
		// A shorter window with more left: the longer one limits, and this
		// read was taken from it too.
		m.remaining--
	default:
		m.remaining = min(m.remaining, w.Remaining)
	}
}

// refused takes an answer of 429. retryAfter is negative where the answer has
// none. Zero counts as none: otherwise each read would be sent at once and
// refused again.
func (m *minuteLimit) refused(now time.Time, retryAfter time.Duration, w *Window) {
	wait := 15 * time.Second
	if retryAfter > 0 {
		wait = min(retryAfter, retryAfterMax)
	} else if w != nil && w.Reset > 0 {
		wait = min(w.Reset, retryAfterMax)
	}
	if until := now.Round(0).Add(wait); until.After(m.blockedUntil) {
		m.blockedUntil = until
	}
}

// allow returns how many more reads may start now. Where none may, at is when
// that can change; the zero time means not before an answer comes.
func (m *minuteLimit) allow(now time.Time) (reads int, at time.Time) {
	now = now.Round(0)
	if m.checkedAt.Sub(now) > time.Minute {
		// The clock was set back: the recorded times would block reads for that
		// much longer.
		*m = minuteLimit{perMinute: m.perMinute, inFlight: m.inFlight}
	}
	m.checkedAt = now
	if now.Before(m.blockedUntil) {
		return 0, m.blockedUntil
	}
	if !m.blockedUntil.IsZero() || m.limited && !now.Before(m.reset) {
		// The pause or the window is over: the API's limit is unknown again.
		m.blockedUntil = time.Time{}
		m.limited, m.known, m.probes = false, false, nil
	}
	reads, at = m.ofAPI(now)
	if own, free := m.ofSandbox(now); own < reads {
		return own, free
	}
	return reads, at
}

// ofAPI returns what the API's limit allows.
func (m *minuteLimit) ofAPI(now time.Time) (int, time.Time) {
	n := math.MaxInt
	if m.limited {
		n = m.remaining - m.inFlight
		if m.remaining <= 0 {
			return 0, m.reset
		}
	}
	if m.known {
		return max(n, 0), time.Time{}
	}
	return m.probe(now, n)
}

// probe returns how many reads may start while the API's limit is unknown.
// The first read goes alone for a while.
func (m *minuteLimit) probe(now time.Time, n int) (int, time.Time) {
	if len(m.probes) == 0 {
		return min(n, 1), time.Time{}
	}
	if alone := m.probes[0].Add(2 * time.Second); now.Before(alone) {
		return 0, alone
	}
	for len(m.probes) > 1 && !now.Before(m.probes[1].Add(probeSlow)) {
		m.probes = append(m.probes[:1], m.probes[2:]...)
	}
	if n = min(n, probeFew-len(m.probes)+1); n > 0 {
		return n, time.Time{}
	}
	if len(m.probes) == 1 {
		return 0, time.Time{}
	}
	return 0, m.probes[1].Add(probeSlow)
}

// ofSandbox returns what the sandbox's own limit allows.
func (m *minuteLimit) ofSandbox(now time.Time) (int, time.Time) {
	if m.perMinute == 0 {
		return math.MaxInt, time.Time{}
	}
	// The times are wall-clock times, and a synchronized clock can be set
	// forward by up to 128 ms at once. Without this margin, reads would come
	// too early by that much.
	const minute = time.Minute + 250*time.Millisecond
	over := 0
	for over < len(m.ends) && !now.Before(m.ends[over].Add(minute)) {
		over++
	}
	m.ends = m.ends[over:]
	n := m.perMinute - m.inFlight - len(m.ends)
	if n > 0 || len(m.ends) == 0 {
		return max(n, 0), time.Time{}
	}
	return 0, m.ends[0].Add(minute)
}
