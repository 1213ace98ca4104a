package poller

import (
	"math"
	"time"
)

const dayLength = 24 * time.Hour

// ledger is the day's allowance of reads and where the day stands. As long as
// the reads taken lie below the line, reads go at the pace that answers ask
// for. The line is what an even day would have used by now and a fifth of
// what it has left: limit × (0.2 + 0.8 × share of the day gone). It climbs at
// just the rate that spreads what is left over what is left of the day, so
// that not crossing it is keeping that pace.
type ledger struct {
	limit int       // 0: the day is not limited
	day   Day       // as last heard
	at    time.Time // when
	// paid is when the last read above the line was taken. Reads stand above
	// the line only after the limit was lowered. A warm sandbox remembers it.
	paid time.Time
}

// start prepares the ledger for a run, which has to ask where the day stands.
func (l *ledger) start() { l.at = time.Time{} }

// known tells whether today's figures are at hand.
func (l *ledger) known(now time.Time) bool {
	return l.limit == 0 || !l.at.IsZero() && l.elapsed(now) < dayLength
}

// heard takes the day's figures.
func (l *ledger) heard(now time.Time, d Day) { l.day, l.at = d, now }

// took notes that a claim took reads.
func (l *ledger) took(now time.Time, n int) {
	if n > 0 && l.above(now) {
		l.paid = now.Round(0)
	}
}

func (l *ledger) elapsed(now time.Time) time.Duration {
	return l.day.Elapsed + now.Sub(l.at)
}

func (l *ledger) line(now time.Time) float64 {
	return float64(l.limit) * (0.2 + 0.8*min(1, l.elapsed(now).Hours()/24))
}

// above tells whether more reads were taken than the line allows by now.
func (l *ledger) above(now time.Time) bool {
	return float64(l.day.Reads) > l.line(now)
}

// ceiling returns what the day's count may reach by a claim now; negative
// where the day is not limited. Where that is no more than the count, at is
// when it will be more.
func (l *ledger) ceiling(now time.Time) (n int, at time.Time) {
	if l.limit == 0 {
		return -1, time.Time{}
	}
	left := dayLength - l.elapsed(now)
	if l.day.Reads >= l.limit {
		return l.day.Reads, now.Add(left)
	}
	if l.above(now) {
		next := l.paid.Add(left / time.Duration(l.limit-l.day.Reads))
		if wall := now.Round(0); wall.Before(next) {
			return l.day.Reads, now.Add(next.Sub(wall))
		}
		return l.day.Reads + 1, time.Time{}
	}
	n = int(l.line(now))
	if n > l.day.Reads {
		return n, time.Time{}
	}
	share := (float64(l.day.Reads+1)/float64(l.limit) - 0.2) / 0.8
	due := time.Duration(math.Ceil(share * float64(dayLength)))
	return n, now.Add(max(due-l.elapsed(now), time.Millisecond))
}

// tight tells whether the line leaves no further read now.
func (l *ledger) tight(now time.Time) bool {
	if l.limit == 0 || l.at.IsZero() {
		return false
	}
	return l.line(now)-float64(l.day.Reads) < 1
}

// stretch returns the interval at which pending jobs can each be read with
// what is left of the day, and from midnight on with the next day's rate;
// zero where the day is not tight.
func (l *ledger) stretch(now time.Time, pending int) time.Duration {
	if !l.tight(now) || pending < 1 {
		return 0
	}
	left := max(0, dayLength-l.elapsed(now))
	reads := max(0, l.limit-l.day.Reads)
	if pending <= reads {
		return time.Duration(float64(left) * float64(pending) / float64(reads))
	}
	return left + time.Duration(float64(dayLength)*float64(pending-reads)/float64(l.limit))
}
