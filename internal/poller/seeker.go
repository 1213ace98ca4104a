package poller

import "time"

// seeker decides when a run claims, when it looks for the next due row, and
// when it stops.
type seeker struct {
	until time.Time // nothing is claimed after
	slots int       // how many free slots are worth a claim
	busy  bool      // a claim, a look or a question for the day's reads is under way

	dueAt       time.Time // no row is known to be due before
	lookBy      time.Time // rows that were added since the last look are noticed by then
	mustLook    bool      // the last claim returned fewer rows than it asked for
	overdue     bool      // the last look saw a due row that no claim returns
	emptyClaims int       // claims in a row that returned no row

	lookedAt   time.Time // start of the last look
	wroteAt    time.Time // end of the run's last write
	soonest    time.Time // earliest due time of the rows written since the last look; zero: none
	slotFreeAt time.Time // when the first slot became free after the last claim
}

// action is what a run does next about claiming.
type action int

const (
	actionWait action = iota
	actionLook
	actionClaim
	actionStop
)

// step is an action with what it needs.
type step struct {
	do     action
	at     time.Time // actionWait: until then; zero: until something ends
	rows   int       // actionClaim
	reason string    // actionStop
}

// allowance is how many rows may be claimed now.
type allowance struct {
	rows   int
	at     time.Time // if rows is 0: when that can change; zero: only after another event
	reason string    // where rows is 0: why the run stops if that is too late
}

// next returns what to do now. actionClaim means that a row may be due: claim
// decides the rest. idle means that nothing is in flight or waits to be written.
func (s *seeker) next(now time.Time, idle bool) step {
	if s.mustLook {
		return step{do: actionLook}
	}
	if !now.Before(s.dueAt) || !now.Before(s.lookBy) {
		return step{do: actionClaim}
	}
	if s.dueAt.Before(s.until) || s.overdue || !idle {
		return step{at: earlier(s.dueAt, s.lookBy)}
	}
	if s.lookedAt.Before(s.wroteAt) {
		return step{do: actionLook}
	}
	return step{do: actionStop, reason: StoppedDrained}
}

// claim returns what to do where a row may be due. A claim waits for a few free
// slots, or for claimAge, so that rows are not claimed one by one.
func (s *seeker) claim(now time.Time, a allowance, inFlight int, idle bool) step {
	if a.rows == 0 {
		return s.outOfReads(now, a, idle)
	}
	at := s.slotFreeAt.Add(claimAge)
	if inFlight > 0 && a.rows < s.slots && now.Before(at) {
		return step{at: at}
	}
	return step{do: actionClaim, rows: a.rows}
}

// outOfReads waits until reads are allowed again, or stops a run whose time
// budget ends before that. If it matters, it first checks whether anything is
// due at all.
func (s *seeker) outOfReads(now time.Time, a allowance, idle bool) step {
	if a.at.IsZero() || !idle {
		return step{at: a.at}
	}
	waits := a.at.Before(s.until)
	matters := a.reason == StoppedRateLimited
	if waits {
		matters = a.at.Sub(now) > emptyClaimsMax
	}
	if matters && (s.lookedAt.IsZero() || s.lookedAt.Before(s.wroteAt)) {
		return step{do: actionLook}
	}
	if waits {
		return step{at: a.at}
	}
	return step{do: actionStop, reason: a.reason}
}

// claimed takes the size of a claim. byQuota means that the daily quota, not the
// number of due rows, made it smaller than asked for.
func (s *seeker) claimed(asked, rows int, byQuota bool) {
	s.slotFreeAt = time.Time{}
	s.mustLook = rows < asked && !byQuota
	s.emptyClaims++
	if rows > 0 {
		s.emptyClaims = 0
	}
}

// slotFree records that a slot is free.
func (s *seeker) slotFree(now time.Time) {
	if s.slotFreeAt.IsZero() {
		s.slotFreeAt = now
	}
}

// look records that a look begins.
func (s *seeker) look(now time.Time) {
	s.mustLook, s.lookedAt, s.soonest = false, now, time.Time{}
}

// looked takes the answer of a look: the next row is due in this time. ok is
// false where there is no pending row.
func (s *seeker) looked(now time.Time, in time.Duration, ok bool) {
	const lookEvery = 10 * time.Second // a new row is noticed after this time at the latest
	s.lookBy = now.Add(lookEvery)
	s.overdue = ok && in <= 0
	if !ok {
		in = dayLength
	}
	if s.overdue && s.emptyClaims > 0 {
		// Due, but no claim returns it: another program holds the row.
		in = min(claimAge<<min(s.emptyClaims, 10), emptyClaimsMax)
	}
	s.dueAt = now.Add(in)
	if !s.soonest.IsZero() {
		s.dueBy(s.soonest)
	}
}

// dueBy records that a row that this run wrote is due at t.
func (s *seeker) dueBy(t time.Time) {
	s.dueAt = earlier(t, s.dueAt)
	if s.soonest.IsZero() || t.Before(s.soonest) {
		s.soonest = t
	}
}

// slotsWanted is how many free slots are worth a claim at once. A claim that
// counts its reads is two statements. With this many rows, these two and the
// settle add up to less than a tenth of a statement for each read.
func slotsWanted(concurrency int) int { return max(1, min(24, concurrency/4)) }

func earlier(a, b time.Time) time.Time {
	if a.Before(b) {
		return a
	}
	return b
}
