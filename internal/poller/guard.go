package poller

import (
	"slices"
	"time"
)

const (
	// A run ends after downStreak read errors in a row for which the API itself
	// may be the cause.
	downStreak = 20
	// The key counts as refused after suspectsMax rows with 403 before any
	// other answer, or with 401 in a row.
	suspectsMax = 5
)

// guard finds out from the answers of a run whether the API is down, whether it
// refuses the key, or whether an error concerns one row only.
//
// A 403 before any other answer, and a 401 after the key was accepted, can be
// the row's or the key's. Such reads are kept as suspects. Five suspects mean
// that the key is refused. If another answer comes before that, the suspects
// are errors of their rows. After a 401, only the answer to a read that began
// later counts: an earlier read may have been accepted before the key was
// revoked.
type guard struct {
	suspects []read
	answered bool // the API has given another answer than 401, 403 or 429
	accepted bool // the API has accepted the key

	streak int             // read errors in a row for which the API may be the cause
	lost   map[uint64]bool // lost connections that the streak counts
}

// verdict is the guard's decision about one answer.
type verdict int

const (
	ofRow      verdict = iota // the answer, good or not, is about its row
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

// apiDown records an answer and reports whether the API counts as down: after
// downStreak errors in a row. Any JSON answer below 500 ends the streak. A lost
// connection counts once, however many reads were lost with it.
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
