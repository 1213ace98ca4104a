package poller

import (
	"math"
	"testing"
	"time"
)

func TestMinuteLimit_FirstRead(t *testing.T) {
	now := time.Now()
	var m minuteLimit
	m.start()
	expect := func(when string, at time.Time, want int) {
		t.Helper()
		if n, _ := m.allow(at); n != want {
			t.Errorf("%s: got %d reads allowed, want %d", when, n, want)
		}
	}
	expect("at first", now, 1)
	m.begin(now)
	expect("while it is under way", now.Add(time.Second), 0)
	expect("after two seconds", now.Add(2*time.Second), 8)
	m.end(now)
	m.update(now, &Window{Limit: 120, Remaining: 30, Reset: 20 * time.Second})
	expect("once known", now.Add(3*time.Second), 30)
	m.begin(now)
	expect("less what is in flight", now.Add(3*time.Second), 29)
	m.update(now, &Window{Remaining: 29, Reset: 21 * time.Second})
	m.update(now, &Window{Remaining: 35, Reset: 20 * time.Second})
	expect("answers overtake each other", now.Add(3*time.Second), 28)
	expect("when the window is over", now.Add(22*time.Second), 1)
}

func TestMinuteLimit_OverRuns(t *testing.T) {
	now := time.Now()
	var m minuteLimit
	m.begin(now)
	m.end(now)
	m.update(now, &Window{Remaining: 0, Reset: 40 * time.Second})
	m.start()
	if n, at := m.allow(now.Add(time.Second)); n != 0 || at.Sub(now.Round(0)) != 40*time.Second {
		t.Errorf("got %d until %v, want none for 40 s", n, at.Sub(now.Round(0)))
	}
	m.refused(now, 90*time.Second, nil)
	m.start()
	if n, at := m.allow(now.Add(41 * time.Second)); n != 0 || at.Sub(now.Round(0)) != 90*time.Second {
		t.Errorf("got %d until %v, want none for 90 s", n, at.Sub(now.Round(0)))
	}
	if n, _ := m.allow(now.Add(91 * time.Second)); n != 1 {
		t.Errorf("got %d after the wait, want a first read alone", n)
	}
}

func TestMinuteLimit_LongerWindow(t *testing.T) {
	now := time.Now()
	var m minuteLimit
	m.update(now, &Window{Remaining: 100, Reset: 30 * time.Second})
	m.update(now, &Window{Remaining: 5, Reset: 3 * time.Hour})
	m.update(now, &Window{Remaining: 90, Reset: 30 * time.Second})
	if n, _ := m.allow(now); n != 4 {
		t.Errorf("got %d, want the 5 of the longer window less one read", n)
	}
}

func TestMinuteLimit_ShorterWindow(t *testing.T) {
	now := time.Now()
	var m minuteLimit
	m.update(now, &Window{Remaining: 5000, Reset: 12 * time.Hour})
	m.update(now, &Window{Remaining: 0, Reset: 30 * time.Second})
	n, at := m.allow(now)
	if n != 0 || at.Sub(now.Round(0)) != 30*time.Second {
		t.Errorf("got %d until %v, want none for 30 s, not for 12 h", n, at.Sub(now.Round(0)))
	}
	if n, _ := m.allow(now.Add(30 * time.Second)); n != 1 {
		t.Errorf("got %d after the minute's end, want a first read alone", n)
	}
}

func TestMinuteLimit_RefusedFor(t *testing.T) {
	for name, c := range map[string]struct {
		retryAfter time.Duration
		window     *Window
		want       time.Duration
	}{
		"Retry-After":                    {7 * time.Second, &Window{Reset: 40 * time.Second}, 7 * time.Second},
		"until the reset":                {-1, &Window{Reset: 40 * time.Second}, 40 * time.Second},
		"15 s without headers":           {-1, nil, 15 * time.Second},
		"15 s without a wait":            {0, nil, 15 * time.Second},
		"until the reset, Retry-After 0": {0, &Window{Reset: 40 * time.Second}, 40 * time.Second},
		"a Retry-After of a year":        {365 * 24 * time.Hour, nil, 24 * time.Hour},
		"a reset in a year":              {-1, &Window{Reset: 365 * 24 * time.Hour}, 24 * time.Hour},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			now := time.Now()
			var m minuteLimit
			m.refused(now, c.retryAfter, c.window)
			if n, at := m.allow(now); n != 0 || at.Sub(now.Round(0)) != c.want {
				t.Errorf("got %d until %v, want none for %v", n, at.Sub(now.Round(0)), c.want)
			}
		})
	}
}

func TestMinuteLimit_ClockSetBack(t *testing.T) {
	now := time.Now()
	for name, then := range map[string]func(*minuteLimit){
		"the sandbox's minute": func(m *minuteLimit) { m.begin(now); m.end(now) },
		"the API's limit":      func(m *minuteLimit) { m.update(now, &Window{Remaining: 0, Reset: time.Minute}) },
		"a wait after a 429":   func(m *minuteLimit) { m.refused(now, time.Minute, nil) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			m := minuteLimit{perMinute: 1}
			m.allow(now)
			then(&m)
			m.start()
			if n, _ := m.allow(now.Add(-time.Second)); n != 0 {
				t.Errorf("got %d a second back, want none", n)
			}
			if n, _ := m.allow(now.Add(-time.Hour)); n != 1 {
				t.Errorf("got %d an hour back, want a first read alone", n)
			}
		})
	}
}

func TestMinuteLimit_NoLimit(t *testing.T) {
	now := time.Now()
	var m minuteLimit
	m.update(now, nil)
	if n, _ := m.allow(now); n < 1_000_000 {
		t.Errorf("got %d, want no limit", n)
	}
}

func TestMinuteLimit_SlowProbes(t *testing.T) {
	now := time.Now()
	var m minuteLimit
	m.start()
	m.begin(now)
	// No answer comes: eight more each second, whatever is in flight.
	for at := 2 * time.Second; at < 6*time.Second; at += time.Second {
		n, _ := m.allow(now.Add(at))
		if n != probeFew {
			t.Fatalf("after %v: got %d, want %d", at, n, probeFew)
		}
		for range n {
			m.begin(now.Add(at))
		}
		if n, next := m.allow(now.Add(at)); n != 0 || next.Sub(now.Round(0)) != at+probeSlow {
			t.Fatalf("after %v: got %d more until %v, want none for a second", at, n, next.Sub(now.Round(0)))
		}
	}
	m.perMinute = 40
	if n, _ := m.allow(now.Add(6 * time.Second)); n != 7 {
		t.Errorf("got %d under a limit of 40 with 33 in flight, want 7", n)
	}
}

func TestMinuteLimit_Unblock(t *testing.T) {
	now := time.Now()
	var m minuteLimit
	m.refused(now, 5*time.Hour, nil)
	m.start()
	m.unblock()
	if n, _ := m.allow(now.Add(time.Second)); n != 1 {
		t.Errorf("got %d reads after the wait was dropped, want a first one alone", n)
	}
}

// A wall clock that is set forward by 128 ms must not bring reads closer than a
// minute.
func TestMinuteLimit_ClockSetForward(t *testing.T) {
	now := time.Now()
	m := minuteLimit{perMinute: 1, known: true}
	m.begin(now)
	m.end(now)
	if n, at := m.allow(now.Add(time.Minute + 128*time.Millisecond)); n != 0 || !at.After(now.Add(time.Minute+128*time.Millisecond)) {
		t.Errorf("got %d until %v, want none yet", n, at.Sub(now))
	}
	if n, _ := m.allow(now.Add(time.Minute + 250*time.Millisecond)); n != 1 {
		t.Errorf("got %d after the slack, want 1", n)
	}
}

// checkAllow fails where not so many reads may start after so long, or not from
// then on (negative: not before an answer comes).
func checkAllow(t *testing.T, m *minuteLimit, in time.Duration, want int, from time.Duration) {
	t.Helper()
	reads, at := m.allow(noon.Add(in))
	if reads != want || at.IsZero() != (from < 0) || from >= 0 && at.Sub(noon) != from {
		t.Errorf("after %v: got %d from %v, want %d from %v", in, reads, at.Sub(noon), want, from)
	}
}

func TestMinuteLimit_Update(t *testing.T) {
	type window struct {
		after     time.Duration
		remaining int
		reset     time.Duration
	}
	for name, c := range map[string]struct {
		windows   []window
		remaining int
		reset     time.Duration
	}{
		"one":                         {[]window{{0, 9, 30 * time.Second}}, 9, 30 * time.Second},
		"no reset":                    {[]window{{0, 9, 0}}, 9, time.Second},
		"a reset in a year":           {[]window{{0, 9, 365 * 24 * time.Hour}}, 9, 24 * time.Hour},
		"less left":                   {[]window{{0, 9, 30 * time.Second}, {0, 8, 30 * time.Second}}, 8, 30 * time.Second},
		"more left":                   {[]window{{0, 9, 30 * time.Second}, {0, 10, 30 * time.Second}}, 9, 30 * time.Second},
		"2 s longer: the same window": {[]window{{0, 9, 30 * time.Second}, {0, 20, 32 * time.Second}}, 9, 30 * time.Second},
		"over 2 s longer":             {[]window{{0, 9, 30 * time.Second}, {0, 20, 32*time.Second + 1}}, 20, 32*time.Second + 1},
		"2 s shorter":                 {[]window{{0, 9, 30 * time.Second}, {0, 5, 28 * time.Second}}, 5, 30 * time.Second},
		"shorter with less left":      {[]window{{0, 9, 30 * time.Second}, {0, 8, 28*time.Second - 1}}, 8, 28*time.Second - 1},
		"shorter with as much left":   {[]window{{0, 9, 30 * time.Second}, {0, 9, 28*time.Second - 1}}, 8, 30 * time.Second},
		"shorter with more left":      {[]window{{0, 9, 30 * time.Second}, {0, 50, 10 * time.Second}}, 8, 30 * time.Second},
		"after the end": {
			[]window{{0, 9, 30 * time.Second}, {30 * time.Second, 50, time.Second}}, 50, 31 * time.Second,
		},
		"just before the end": {
			[]window{{0, 9, 30 * time.Second}, {30*time.Second - 1, 50, time.Second}}, 9, 30 * time.Second,
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var m minuteLimit
			for _, w := range c.windows {
				m.update(noon.Add(w.after), &Window{Remaining: w.remaining, Reset: w.reset})
			}
			if got := m.reset.Sub(noon); !m.known || !m.limited || m.remaining != c.remaining || got != c.reset {
				t.Errorf("got %d left for %v, want %d for %v", m.remaining, got, c.remaining, c.reset)
			}
		})
	}
}

func TestMinuteLimit_NoHeaders(t *testing.T) {
	m := minuteLimit{limited: true, remaining: 3, reset: noon.Add(time.Minute)}
	m.update(noon, nil)
	checkAllow(t, &m, 0, math.MaxInt, -1)
	m.update(noon, &Window{Remaining: 3, Reset: time.Minute})
	m.update(noon, nil) // another answer of the same run
	checkAllow(t, &m, 0, 3, -1)
}

func TestMinuteLimit_Window(t *testing.T) {
	var m minuteLimit
	m.update(noon, &Window{Remaining: 2, Reset: time.Minute})
	checkAllow(t, &m, 0, 2, -1)
	m.begin(noon)
	m.begin(noon)
	checkAllow(t, &m, 0, 0, -1)
	m.begin(noon)
	checkAllow(t, &m, 0, 0, -1)
	m.end(noon)
	m.update(noon, &Window{Remaining: 0, Reset: time.Minute})
	checkAllow(t, &m, time.Minute-1, 0, time.Minute)
	m.inFlight = 0
	checkAllow(t, &m, time.Minute, 1, -1)
	if m.limited || m.known || len(m.ends) != 0 {
		t.Errorf("got %+v after the window, want nothing known", m)
	}
}

func TestMinuteLimit_Refused(t *testing.T) {
	var m minuteLimit
	m.refused(noon, 10*time.Second, nil)
	m.refused(noon, 5*time.Second, nil) // the longer pause stays
	checkAllow(t, &m, 10*time.Second-1, 0, 10*time.Second)
	checkAllow(t, &m, 10*time.Second, 1, -1)
	m.refused(noon, -1, &Window{Reset: 0})
	checkAllow(t, &m, 0, 0, 15*time.Second)
}

func TestMinuteLimit_Probe(t *testing.T) {
	var m minuteLimit
	m.start()
	m.begin(noon)
	checkAllow(t, &m, 2*time.Second-1, 0, 2*time.Second)
	checkAllow(t, &m, 2*time.Second, 8, -1)
	for range 8 {
		m.begin(noon.Add(2 * time.Second))
	}
	checkAllow(t, &m, 3*time.Second-1, 0, 3*time.Second)
	checkAllow(t, &m, 3*time.Second, 8, -1)
	m.begin(noon.Add(3 * time.Second))
	checkAllow(t, &m, 3*time.Second, 7, -1)
	m.update(noon, nil)
	m.begin(noon)
	if len(m.probes) != 2 {
		t.Errorf("%d reads count as probes, want those before the limit was known", len(m.probes))
	}
}

func TestMinuteLimit_ProbeOfAFewLeft(t *testing.T) {
	var m minuteLimit
	m.update(noon, &Window{Remaining: 3, Reset: time.Minute})
	m.start()
	checkAllow(t, &m, 0, 1, -1)
	m.begin(noon)
	checkAllow(t, &m, 2*time.Second, 2, -1)
	m.remaining = 1
	checkAllow(t, &m, 2*time.Second, 0, -1)
	m.begin(noon)
	checkAllow(t, &m, time.Minute-time.Millisecond, 0, -1)
}

func TestMinuteLimit_OfSandbox(t *testing.T) {
	const minute = time.Minute + 250*time.Millisecond
	m := minuteLimit{perMinute: 3, known: true}
	checkAllow(t, &m, 0, 3, -1)
	for range 3 {
		m.begin(noon)
	}
	checkAllow(t, &m, 0, 0, -1)
	m.end(noon)
	m.end(noon.Add(time.Second))
	checkAllow(t, &m, time.Second, 0, minute)
	checkAllow(t, &m, minute-1, 0, minute)
	checkAllow(t, &m, minute, 1, -1)
	checkAllow(t, &m, minute+time.Second, 2, -1)
	m.end(noon.Add(2 * time.Second))
	m.begin(noon)
	m.begin(noon)
	m.begin(noon)
	checkAllow(t, &m, 3*time.Second, 0, 2*time.Second+minute)
}

func TestMinuteLimit_BothUsedUp(t *testing.T) {
	m := minuteLimit{perMinute: 1}
	m.begin(noon)
	m.end(noon)
	m.update(noon, &Window{Remaining: 0, Reset: 30 * time.Second})
	checkAllow(t, &m, 0, 0, 30*time.Second) // the sandbox's limit is checked again then
	checkAllow(t, &m, 30*time.Second, 0, time.Minute+250*time.Millisecond)
}

func TestMinuteLimit_ClockSetBackAMinute(t *testing.T) {
	m := minuteLimit{perMinute: 1, inFlight: 1}
	m.allow(noon)
	m.ends = []time.Time{noon}
	m.allow(noon.Add(-time.Minute))
	if len(m.ends) != 1 {
		t.Error("a minute back, the reads were forgotten")
	}
	m.checkedAt = noon
	m.allow(noon.Add(-time.Minute - 1))
	if len(m.ends) != 0 || m.perMinute != 1 || m.inFlight != 1 {
		t.Errorf("over a minute back: got %+v, want nothing but the limit and the reads in flight", m)
	}
}
