package poller

import (
	"testing"
	"time"
)

func TestMeterLetsTheFirstReadGoAlone(t *testing.T) {
	t.Parallel()
	now := time.Now()
	var m meter
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
	m.answered(now, &Window{Limit: 120, Remaining: 30, Reset: 20 * time.Second})
	expect("once told", now.Add(3*time.Second), 30)
	m.begin(now)
	expect("less what is in flight", now.Add(3*time.Second), 29)
	m.answered(now, &Window{Remaining: 29, Reset: 21 * time.Second})
	m.answered(now, &Window{Remaining: 35, Reset: 20 * time.Second})
	expect("answers overtake each other", now.Add(3*time.Second), 28)
	expect("when the window is over", now.Add(22*time.Second), 1)
}

func TestMeterRemembersOverRuns(t *testing.T) {
	t.Parallel()
	now := time.Now()
	var m meter
	m.begin(now)
	m.end(now)
	m.answered(now, &Window{Remaining: 0, Reset: 40 * time.Second})
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

func TestMeterTakesALongerWindowForTheOneThatBinds(t *testing.T) {
	t.Parallel()
	now := time.Now()
	var m meter
	m.answered(now, &Window{Remaining: 100, Reset: 30 * time.Second})
	m.answered(now, &Window{Remaining: 5, Reset: 3 * time.Hour})
	m.answered(now, &Window{Remaining: 90, Reset: 30 * time.Second})
	if n, _ := m.allow(now); n != 4 {
		t.Errorf("got %d, want the day's 5 less the read that told the minute's", n)
	}
}

func TestMeterTakesAShorterWindowWithLessLeftForTheOneThatBinds(t *testing.T) {
	t.Parallel()
	now := time.Now()
	var m meter
	m.answered(now, &Window{Remaining: 5000, Reset: 12 * time.Hour})
	m.answered(now, &Window{Remaining: 0, Reset: 30 * time.Second})
	n, at := m.allow(now)
	if n != 0 || at.Sub(now.Round(0)) != 30*time.Second {
		t.Errorf("got %d until %v, want none for the minute's 30 s, not the day's 12 h", n, at.Sub(now.Round(0)))
	}
	if n, _ := m.allow(now.Add(30 * time.Second)); n != 1 {
		t.Errorf("got %d after the minute's end, want a first read alone", n)
	}
}

func TestMeterWaitsAfterARefusal(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		retryAfter time.Duration
		window     *Window
		want       time.Duration
	}{
		"as Retry-After asks":                   {7 * time.Second, &Window{Reset: 40 * time.Second}, 7 * time.Second},
		"until the reset":                       {-1, &Window{Reset: 40 * time.Second}, 40 * time.Second},
		"as we like, where nothing is told":     {-1, nil, limitWait},
		"as we like, where no wait is told":     {0, nil, limitWait},
		"until the reset, where no wait is":     {0, &Window{Reset: 40 * time.Second}, 40 * time.Second},
		"a day at most, for Retry-After":        {365 * 24 * time.Hour, nil, 24 * time.Hour},
		"a day at most, for the window's reset": {-1, &Window{Reset: 365 * 24 * time.Hour}, 24 * time.Hour},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			now := time.Now()
			var m meter
			m.refused(now, c.retryAfter, c.window)
			if n, at := m.allow(now); n != 0 || at.Sub(now.Round(0)) != c.want {
				t.Errorf("got %d until %v, want none for %v", n, at.Sub(now.Round(0)), c.want)
			}
		})
	}
}

func TestMeterForgetsWhenTheClockIsSetBack(t *testing.T) {
	t.Parallel()
	now := time.Now()
	for name, then := range map[string]func(*meter){
		"its own minute":     func(m *meter) { m.begin(now); m.end(now) },
		"the server's":       func(m *meter) { m.answered(now, &Window{Remaining: 0, Reset: time.Minute}) },
		"a wait after a 429": func(m *meter) { m.refused(now, time.Minute, nil) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			m := meter{perMinute: 1}
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

func TestMeterWithoutHeadersKnowsNoLimit(t *testing.T) {
	t.Parallel()
	now := time.Now()
	var m meter
	m.answered(now, nil)
	if n, _ := m.allow(now); n < 1_000_000 {
		t.Errorf("got %d, want no limit", n)
	}
}

func TestMeter_SlowProbes(t *testing.T) {
	t.Parallel()
	now := time.Now()
	var m meter
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

func TestMeter_Forget(t *testing.T) {
	t.Parallel()
	now := time.Now()
	var m meter
	m.refused(now, 5*time.Hour, nil)
	m.start()
	m.forget()
	if n, _ := m.allow(now.Add(time.Second)); n != 1 {
		t.Errorf("got %d reads after the wait was dropped, want a first one alone", n)
	}
}

// A wall clock that is set forward by 128 ms must not bring reads closer than a
// minute.
func TestMeter_ClockSetForward(t *testing.T) {
	t.Parallel()
	now := time.Now()
	m := meter{perMinute: 1, told: true}
	m.begin(now)
	m.end(now)
	if n, at := m.allow(now.Add(time.Minute + 128*time.Millisecond)); n != 0 || !at.After(now.Add(time.Minute+128*time.Millisecond)) {
		t.Errorf("got %d until %v, want none yet", n, at.Sub(now))
	}
	if n, _ := m.allow(now.Add(time.Minute + clockSlack)); n != 1 {
		t.Errorf("got %d after the slack, want 1", n)
	}
}
