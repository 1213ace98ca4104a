package poller

import (
	"testing"
	"time"
)

func TestNewDeadlines(t *testing.T) {
	for name, c := range map[string]struct {
		budget, limit         time.Duration // limit 0: none
		claims, reads, writes time.Duration // 0: none
	}{
		"no limit":            {58 * time.Second, 0, 58 * time.Second, 0, 0},
		"a limit of 90 s":     {58 * time.Second, 90 * time.Second, 58 * time.Second, 87 * time.Second, 89250 * time.Millisecond},
		"a limit of 10 s":     {58 * time.Second, 10 * time.Second, 8 * time.Second, 8 * time.Second, 9500 * time.Millisecond},
		"a budget to the end": {87 * time.Second, 90 * time.Second, 87 * time.Second, 87 * time.Second, 89250 * time.Millisecond},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			at := func(in time.Duration) time.Time {
				if in == 0 {
					return time.Time{}
				}
				return noon.Add(in)
			}
			want := deadlines{claims: at(c.claims), reads: at(c.reads), writes: at(c.writes)}
			if got := newDeadlines(noon, c.budget, at(c.limit)); got != want {
				t.Errorf("got %v, want %v", got, want)
			}
		})
	}
}

func TestDeadlines_Write(t *testing.T) {
	for name, c := range map[string]struct {
		deadlines deadlines
		want      time.Duration
		leaves    bool // a second
	}{
		"none":            {deadlines{}, 10 * time.Second, true},
		"far away":        {deadlines{writes: noon.Add(time.Minute)}, 10 * time.Second, true},
		"near":            {deadlines{writes: noon.Add(2 * time.Second)}, 2 * time.Second, true},
		"a second":        {deadlines{writes: noon.Add(time.Second)}, time.Second, false},
		"over a second":   {deadlines{writes: noon.Add(time.Second + 1)}, time.Second + 1, true},
		"already reached": {deadlines{writes: noon.Add(-time.Second)}, -time.Second, false},
	} {
		if got := c.deadlines.write(noon).Sub(noon); got != c.want {
			t.Errorf("%s: a write may take %v, want %v", name, got, c.want)
		}
		if got := c.deadlines.leaves(noon, time.Second); got != c.leaves {
			t.Errorf("%s: a second is left: got %v, want %v", name, got, c.leaves)
		}
	}
}

func TestReserve(t *testing.T) {
	for limit, want := range map[time.Duration]time.Duration{
		time.Minute: 3 * time.Second, 15 * time.Second: 3 * time.Second, 10 * time.Second: 2 * time.Second, 0: 0, -time.Second: 0,
	} {
		if got := Reserve(limit); got != want {
			t.Errorf("of %v: got %v, want %v", limit, got, want)
		}
	}
}
