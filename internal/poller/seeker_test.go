package poller

import (
	"testing"
	"time"
)

func after(in time.Duration) time.Time { return noon.Add(in) }

func TestSeeker_Next(t *testing.T) {
	for name, c := range map[string]struct {
		seeker seeker
		busy   bool // reads or writes are under way
		want   step
	}{
		"a run begins":         {seeker{until: after(time.Minute)}, false, step{do: actionClaim}},
		"the last claim short": {seeker{mustLook: true}, false, step{do: actionLook}},
		"due now":              {seeker{dueAt: noon, lookBy: after(1)}, false, step{do: actionClaim}},
		"time to look":         {seeker{dueAt: after(1), lookBy: noon}, false, step{do: actionClaim}},
		"due soon": {
			seeker{until: after(3), dueAt: after(2), lookBy: after(5)}, false, step{at: after(2)},
		},
		"looks before it is due": {
			seeker{until: after(9), dueAt: after(5), lookBy: after(2)}, false, step{at: after(2)},
		},
		"due at the end of the budget": {
			seeker{until: after(3), dueAt: after(3), lookBy: after(5)}, false, step{do: actionStop, reason: StoppedDrained},
		},
		"due later, but busy": {
			seeker{until: after(3), dueAt: after(4), lookBy: after(5)}, true, step{at: after(4)},
		},
		"due later, and overdue": {
			seeker{until: after(3), dueAt: after(4), lookBy: after(5), overdue: true}, false, step{at: after(4)},
		},
		"written since the last look": {
			seeker{until: after(3), dueAt: after(4), lookBy: after(5), lookedAt: noon, wroteAt: after(1)}, false, step{do: actionLook},
		},
		"looked since the last write": {
			seeker{until: after(3), dueAt: after(4), lookBy: after(5), lookedAt: noon, wroteAt: noon},
			false,
			step{do: actionStop, reason: StoppedDrained},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if got := c.seeker.next(noon, !c.busy); got != c.want {
				t.Errorf("got %+v, want %+v", got, c.want)
			}
		})
	}
}

func TestSeeker_Claim(t *testing.T) {
	s := seeker{until: after(time.Minute), slots: 16, slotFreeAt: noon}
	looked := s
	looked.lookedAt, looked.wroteAt = noon, noon
	written := looked
	written.wroteAt = after(1)
	claim := func(rows int) step { return step{do: actionClaim, rows: rows} }
	none := func(in time.Duration, reason string) allowance { return allowance{at: after(in), reason: reason} }
	for name, c := range map[string]struct {
		seeker   seeker
		allowed  allowance
		inFlight int
		after    time.Duration
		busy     bool
		want     step
	}{
		"nothing in flight":      {s, allowance{rows: 1}, 0, 0, false, claim(1)},
		"enough slots":           {s, allowance{rows: 16}, 1, 0, true, claim(16)},
		"too few slots":          {s, allowance{rows: 15}, 1, 0, true, step{at: after(claimAge)}},
		"few slots, not yet":     {s, allowance{rows: 15}, 1, claimAge - 1, true, step{at: after(claimAge)}},
		"few slots, long enough": {s, allowance{rows: 15}, 1, claimAge, true, claim(15)},
		"until something ends":   {s, allowance{}, 0, 0, false, step{}},
		"busy":                   {s, none(5, StoppedRateLimited), 0, 0, true, step{at: after(5)}},

		"minute limit, a short wait":     {s, none(time.Second, StoppedRateLimited), 0, 0, false, step{at: after(time.Second)}},
		"minute limit, a longer wait":    {s, none(time.Second+1, StoppedRateLimited), 0, 0, false, step{do: actionLook}},
		"minute limit, looked":           {looked, none(time.Second+1, StoppedRateLimited), 0, 0, false, step{at: after(time.Second + 1)}},
		"minute limit, written since":    {written, none(time.Second+1, StoppedRateLimited), 0, 0, false, step{do: actionLook}},
		"minute limit, past the budget":  {s, none(time.Minute, StoppedRateLimited), 0, 0, false, step{do: actionLook}},
		"minute limit, past it, looked":  {looked, none(time.Minute, StoppedRateLimited), 0, 0, false, step{do: actionStop, reason: StoppedRateLimited}},
		"daily quota, past the budget":   {s, none(time.Minute, StoppedDailyLimit), 0, 0, false, step{do: actionStop, reason: StoppedDailyLimit}},
		"daily quota, within the budget": {s, none(time.Minute-1, StoppedDailyLimit), 0, 0, false, step{do: actionLook}},
		"daily quota, looked":            {looked, none(time.Minute-1, StoppedDailyLimit), 0, 0, false, step{at: after(time.Minute - 1)}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if got := c.seeker.claim(after(c.after), c.allowed, c.inFlight, !c.busy); got != c.want {
				t.Errorf("got %+v, want %+v", got, c.want)
			}
		})
	}
}

func TestSeeker_Claimed(t *testing.T) {
	for name, c := range map[string]struct {
		asked, rows int
		byQuota     bool
		look        bool
		empty       int
	}{
		"as many as asked": {5, 5, false, false, 0},
		"fewer":            {5, 4, false, true, 0},
		"none":             {5, 0, false, true, 3},
		"fewer by quota":   {5, 4, true, false, 0},
	} {
		s := seeker{emptyClaims: 2, slotFreeAt: noon}
		s.claimed(c.asked, c.rows, c.byQuota)
		if s.mustLook != c.look || s.emptyClaims != c.empty || !s.slotFreeAt.IsZero() {
			t.Errorf("%s: got %+v", name, s)
		}
	}
	var s seeker
	s.slotFree(noon)
	s.slotFree(after(time.Second))
	if !s.slotFreeAt.Equal(noon) {
		t.Errorf("a slot is free since %v, want since the first", s.slotFreeAt)
	}
}

func TestSeeker_Looked(t *testing.T) {
	for name, c := range map[string]struct {
		seeker  seeker
		in      time.Duration
		none    bool
		want    time.Duration
		overdue bool
	}{
		"due later":               {seeker{}, time.Minute, false, time.Minute, false},
		"due now":                 {seeker{}, 0, false, 0, true},
		"due before":              {seeker{}, -time.Minute, false, -time.Minute, true},
		"nothing pending":         {seeker{}, 0, true, 24 * time.Hour, false},
		"due, an empty claim":     {seeker{emptyClaims: 1}, 0, false, 24 * time.Millisecond, true},
		"due, three empty claims": {seeker{emptyClaims: 3}, -1, false, 96 * time.Millisecond, true},
		"due, many empty claims":  {seeker{emptyClaims: 1 << 20}, -1, false, time.Second, true},
		"later, an empty claim":   {seeker{emptyClaims: 1}, 1, false, 1, false},
		"a written row is sooner": {seeker{soonest: after(time.Second)}, time.Minute, false, time.Second, false},
		"a written row is later":  {seeker{soonest: after(time.Hour)}, time.Minute, false, time.Minute, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := c.seeker
			s.looked(noon, c.in, !c.none)
			if got := s.dueAt.Sub(noon); got != c.want || s.overdue != c.overdue || s.lookBy.Sub(noon) != 10*time.Second {
				t.Errorf("got due in %v, overdue %v, next look in %v; want %v, %v, 10 s", got, s.overdue, s.lookBy.Sub(noon), c.want, c.overdue)
			}
		})
	}
}

func TestSeeker_DueBy(t *testing.T) {
	s := seeker{dueAt: after(5), mustLook: true}
	s.dueBy(after(7))
	if s.dueAt != after(5) || s.soonest != after(7) {
		t.Errorf("got %v and %v, want the known due time and the first written", s.dueAt, s.soonest)
	}
	s.dueBy(after(3))
	s.dueBy(after(4))
	if s.dueAt != after(3) || s.soonest != after(3) {
		t.Errorf("got %v and %v, want the soonest written", s.dueAt, s.soonest)
	}
	s.look(after(9))
	if s.mustLook || !s.soonest.IsZero() || s.lookedAt != after(9) {
		t.Errorf("got %+v, want a look that begins", s)
	}
}

func TestSlotsWanted(t *testing.T) {
	for concurrency, want := range map[int]int{1: 1, 7: 1, 8: 2, 64: 16, 96: 24, 400: 24} {
		if got := slotsWanted(concurrency); got != want {
			t.Errorf("of %d: got %d, want %d", concurrency, got, want)
		}
	}
}
