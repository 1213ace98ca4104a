package poller

import (
	"slices"
	"time"
)

// guard finds out from the answers of a run whether the API is down or refuses
// the key, or whether single rows are at fault.
//
// A 403 before any other answer, and a 401 after the key was accepted, can be
// either: such reads are kept as suspects. Five of them mean the key. Another
// answer before that means the rows; for a 401 it must be the answer of a read
// that began later, since one that was in flight may have been let in before
// the key was revoked.
type guard struct {
	suspects []read
	answered bool // the API has answered otherwise than with 401, 403 or 429
	accepted bool // the API has accepted the key

	streak int             // errors in a row of the kind that a dead API causes
	lost   map[uint64]bool // connections whose loss is in the streak
}

// verdict is what the guard says of one answer.
type verdict int

const (
	ofRow      verdict = iota // the answer, good or not, concerns its row
	suspect                   // kept until more is known
	keyRefused                // nobody can be read with this key
)

// judge returns what an answer means. The suspects that it clears are returned
// as well: they are errors of their rows.
func (g *guard) judge(r read) (v verdict, cleared []read) {
	status := 0
	if r.fault != nil {
		status = r.fault.HTTPStatus
	}
	switch {
	case r.fault != nil && r.fault.Class == Unauthorized, status == 403 && !g.answered:
		g.suspects = append(g.suspects, r)
		if len(g.suspects) >= suspectsMax || r.fault.Class == Unauthorized && !g.accepted {
			return keyRefused, nil
		}
		return suspect, nil
	case r.fault != nil && status == 0: // no answer
		return ofRow, nil
	}
	accepts := r.fault == nil || r.fault.JSON && status < 500 && status != 403
	switch {
	case !g.answered:
		cleared = g.clear()
	case accepts:
		cleared = g.clearBefore(r.began)
	}
	g.answered = true
	g.accepted = g.accepted || accepts
	return ofRow, cleared
}

// clear hands the suspects over.
func (g *guard) clear() []read {
	cleared := g.suspects
	g.suspects = nil
	return cleared
}

// clearBefore hands over the suspects that had ended by then.
func (g *guard) clearBefore(then time.Time) (cleared []read) {
	g.suspects = slices.DeleteFunc(g.suspects, func(s read) bool {
		before := !s.ended.After(then)
		if before {
			cleared = append(cleared, s)
		}
		return before
	})
	return cleared
}

// down reports whether so many reads in a row brought no sign of the API that
// it counts as away. Any JSON answer below 500 ends the streak, whatever it
// says. However many reads one connection carried, its loss counts once.
func (g *guard) down(fault *ReadError) bool {
	if fault == nil || fault.JSON && fault.HTTPStatus < 500 || fault.Class == RateLimited || fault.Class == Unauthorized {
		g.streak, g.lost = 0, nil
		return false
	}
	if fault.HTTPStatus == 0 && fault.Class == Malformed {
		return false // nothing was sent
	}
	if fault.Connection != 0 {
		if g.lost[fault.Connection] {
			return false
		}
		if g.lost == nil {
			g.lost = map[uint64]bool{}
		}
		g.lost[fault.Connection] = true
	}
	g.streak++
	return g.streak >= downStreak
}
