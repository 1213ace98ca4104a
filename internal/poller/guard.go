package poller

import (
	"slices"
	"time"
)

const (
	// downStreak errors in a row, of the kind that a dead API causes, end the
	// run.
	downStreak = 20
	// suspectsMax rows with 403 before any other answer, or with 401 in a row,
	// mean that the key is refused.
	suspectsMax = 5
)

// guard finds out from the answers of a run whether the API is down, whether it
// refuses the key, or whether only single rows have an error.
//
// A 403 before any other answer, and a 401 after the key was accepted, can be
// the row's or the key's. Such reads are kept as suspects. Five of them mean the
// key. Another answer before that means the rows. For a 401 it must be the
// answer of a read that began later: one that was in flight may have been
// accepted before the key was revoked.
type guard struct {
	suspects []read
	answered bool // the API has given another answer than 401, 403 or 429
	accepted bool // the API has accepted the key

	streak int             // errors in a row of the kind that a dead API causes
	lost   map[uint64]bool // lost connections that the streak counts
}

// verdict is what the guard says of one answer.
type verdict int

const (
	ofRow      verdict = iota // the answer, good or not, concerns its row
	suspect                   // kept until more is known
	keyRefused                // no job can be read with this key
)

// judge returns what an answer means, and the suspects that it shows to be
// errors of their rows.
func (g *guard) judge(r read) (v verdict, cleared []read) {
	status, unauthorized := 0, false
	if r.err != nil {
		status, unauthorized = r.err.HTTPStatus, r.err.Class == Unauthorized
	}
	if unauthorized || status == 403 && !g.answered {
		g.suspects = append(g.suspects, r)
		if len(g.suspects) >= suspectsMax || unauthorized && !g.accepted {
			return keyRefused, nil
		}
		return suspect, nil
	}
	if r.err != nil && status == 0 { // no answer
		return ofRow, nil
	}
	accepts := r.err.fromAPI() && status != 403
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

// clear removes and returns all suspects.
func (g *guard) clear() []read {
	cleared := g.suspects
	g.suspects = nil
	return cleared
}

// clearBefore removes and returns the suspects that had ended by then.
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

// apiDown reports whether so many reads in a row got no sign of the API that it
// counts as down. Any JSON answer below 500 ends the streak. A lost connection
// counts once, however many reads it carried.
func (g *guard) apiDown(err *ReadError) bool {
	if err.fromAPI() || err.Class == RateLimited || err.Class == Unauthorized {
		g.streak, g.lost = 0, nil
		return false
	}
	if err.HTTPStatus == 0 && err.Class == Malformed {
		return false // nothing was sent
	}
	if err.Connection != 0 {
		if g.lost[err.Connection] {
			return false
		}
		if g.lost == nil {
			g.lost = map[uint64]bool{}
		}
		g.lost[err.Connection] = true
	}
	g.streak++
	return g.streak >= downStreak
}
