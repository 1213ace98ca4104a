package poller

import "time"

const (
	minute = time.Minute
	// clockSlack is added to a minute of the sandbox's own limit. Its times are
	// wall-clock times, and a synchronized clock can be set forward by up to
	// 128 ms at once: reads would then come too early by as much.
	clockSlack = 250 * time.Millisecond
	// probeWait is how long a run's first read goes alone, and probeFew how
	// many may be in flight from then until an answer states the limit. One that
	// has been in flight for probeSlow counts no more: a few slow answers must
	// not hold up the rest.
	probeWait = 2 * time.Second
	probeFew  = 8
	probeSlow = time.Second
	// sameWindow is how far apart two answers of one window may place its end.
	sameWindow = 2 * time.Second
	// limitWait is how long a refused read holds up the rest where the answer
	// tells neither Retry-After nor a reset.
	limitWait = 15 * time.Second
)

// meter keeps the minute's limits: one's own, over any 60 s, and the server's,
// as its answers tell it. A warm sandbox keeps its meter from run to run, so
// it holds wall-clock times, which go on while the sandbox is frozen.
type meter struct {
	perMinute int         // 0: none
	open      int         // reads in flight
	ends      []time.Time // of the reads of the last minute, oldest first

	told      bool        // an answer of this run has told what the server allows
	limited   bool        // the server allows only remaining until reset
	remaining int         // as told, reads in flight not subtracted
	reset     time.Time   // end of that window
	probes    []time.Time // starts of the reads that began while the limit is unknown: the first, and those of the last probeSlow
	blocked   time.Time   // nothing is read before, as an answer of 429 asked

	seen time.Time // when it was last asked
}

// start prepares the meter for a run: what the server allows must be heard
// anew, since other sandboxes may have read meanwhile.
func (m *meter) start() {
	m.open = 0
	m.told = false
	m.probes = nil
}

// forget drops the wait that an answer of 429 asked for, which can be hours.
func (m *meter) forget() { m.blocked = time.Time{} }

// begin notes that a read starts.
func (m *meter) begin(now time.Time) {
	m.open++
	if !m.told {
		m.probes = append(m.probes, now.Round(0))
	}
}

// end notes that a read is over, however it ended. A read counts from its
// start to a minute past its end, for the server saw it somewhere in between.
func (m *meter) end(now time.Time) {
	m.open--
	if m.perMinute > 0 {
		m.ends = append(m.ends, now.Round(0))
	}
}

// answered takes what an answer's headers told; w is nil where they told
// nothing, which means that the server sets no limit.
func (m *meter) answered(now time.Time, w *Window) {
	now = now.Round(0)
	if w == nil {
		if !m.told {
			m.limited = false
		}
		m.told = true
		return
	}
	m.told = true
	reset := now.Add(min(max(w.Reset, time.Second), retryAfterMax))
	shorter := reset.Before(m.reset.Add(-sameWindow))
	switch {
	case !m.limited || !now.Before(m.reset) || reset.After(m.reset.Add(sameWindow)) || shorter && w.Remaining < m.remaining:
		// The first one heard of, a longer one, or a shorter one with less
		// left: it binds, and what else there is must be heard after its end.
		m.limited, m.remaining, m.reset = true, w.Remaining, reset
	case shorter:
		// A shorter window with more left: the longer one binds, and this
		// read was taken from it too.
		m.remaining--
	default:
		m.remaining = min(m.remaining, w.Remaining)
	}
}

// refused takes an answer of 429. wait is its Retry-After, negative where it
// has none; one of nothing would send read after read into the refusal, and
// counts as none.
func (m *meter) refused(now time.Time, wait time.Duration, w *Window) {
	now = now.Round(0)
	until := now.Add(limitWait)
	switch {
	case wait > 0:
		until = now.Add(min(wait, retryAfterMax))
	case w != nil && w.Reset > 0:
		until = now.Add(min(w.Reset, retryAfterMax))
	}
	if until.After(m.blocked) {
		m.blocked = until
	}
}

// allow returns how many more reads may start now, or, where none may, when
// that can change by itself; the zero time means not before an answer comes.
func (m *meter) allow(now time.Time) (int, time.Time) {
	now = now.Round(0)
	if m.seen.Sub(now) > minute {
		// The clock was set back: what it holds would last that much longer.
		*m = meter{perMinute: m.perMinute, open: m.open}
	}
	m.seen = now
	if now.Before(m.blocked) {
		return 0, m.blocked
	}
	if !m.blocked.IsZero() || m.limited && !now.Before(m.reset) {
		// The wait or the window is over: what is left must be heard anew.
		m.blocked = time.Time{}
		m.limited, m.told, m.probes = false, false, nil
	}
	n, at := m.server(now)
	if own, free := m.own(now); own < n {
		return own, free
	}
	return n, at
}

// server is what the API's own limit allows.
func (m *meter) server(now time.Time) (int, time.Time) {
	n := int(^uint(0) >> 1)
	if m.limited {
		n = m.remaining - m.open
		if m.remaining <= 0 {
			return 0, m.reset
		}
	}
	if m.told {
		return max(n, 0), time.Time{}
	}
	return m.probe(now, n)
}

// probe returns how many reads may start while the server's limit is unknown.
func (m *meter) probe(now time.Time, n int) (int, time.Time) {
	if len(m.probes) == 0 {
		return min(n, 1), time.Time{}
	}
	if alone := m.probes[0].Add(probeWait); now.Before(alone) {
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

// own is what one's own limit allows.
func (m *meter) own(now time.Time) (int, time.Time) {
	if m.perMinute == 0 {
		return int(^uint(0) >> 1), time.Time{}
	}
	over := 0
	for over < len(m.ends) && !now.Before(m.ends[over].Add(minute+clockSlack)) {
		over++
	}
	m.ends = m.ends[over:]
	n := m.perMinute - m.open - len(m.ends)
	if n > 0 || len(m.ends) == 0 {
		return max(n, 0), time.Time{}
	}
	return 0, m.ends[0].Add(minute + clockSlack)
}
