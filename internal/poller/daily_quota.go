package poller

import (
	"math"
	"time"
)

const (
	dayLength = 24 * time.Hour
	// paceStart is the share of the daily limit that may be used at midnight.
	paceStart = 0.2
)

// dailyQuota is what is left of the daily limit. As long as the day's reads are
// below the pace line, each job is read at the interval that the API asks for.
// The pace line starts at paceStart and rises evenly to the daily limit at
// midnight UTC. Above it, the stretch spreads the reads that are left over the
// time that is left.
type dailyQuota struct {
	limit int       // the daily limit; 0: none
	day   Day       // from the table
	at    time.Time // when day was read; zero: not in this run
	// aboveAt is when the last read above the pace line was taken, as wall-clock
	// time, since a warm sandbox keeps it. The day's reads are above the line
	// only after the daily limit was lowered.
	aboveAt time.Time
	pending int // pending jobs, for the stretch; negative: not counted in this run
}

// start prepares the quota for a run, which has to ask for the day's reads.
func (q *dailyQuota) start() { q.at, q.pending = time.Time{}, -1 }

// known reports whether today's reads are known.
func (q *dailyQuota) known(now time.Time) bool {
	return q.limit == 0 || !q.at.IsZero() && q.elapsed(now) < dayLength
}

// update takes the day's reads from the table.
func (q *dailyQuota) update(now time.Time, d Day) { q.day, q.at = d, now }

// took records that a claim took reads.
func (q *dailyQuota) took(now time.Time, reads int) {
	if reads > 0 && q.above(now) {
		q.aboveAt = now.Round(0)
	}
}

// gaveBack records that a row was released unread.
func (q *dailyQuota) gaveBack() {
	if q.limit > 0 {
		q.day.Reads--
	}
}

// elapsed returns the time since midnight UTC of the day.
func (q *dailyQuota) elapsed(now time.Time) time.Duration {
	return q.day.Elapsed + now.Sub(q.at)
}

// paceLine returns the reads that may be used by now.
func (q *dailyQuota) paceLine(now time.Time) float64 {
	return float64(q.limit) * (paceStart + (1-paceStart)*min(1, q.elapsed(now).Hours()/24))
}

// above reports whether more reads were taken than the pace line allows.
func (q *dailyQuota) above(now time.Time) bool {
	return float64(q.day.Reads) > q.paceLine(now)
}

// maxReads returns up to which count of the day's reads a claim may go now;
// negative without a daily limit. If that allows no read now, at is when it
// will.
func (q *dailyQuota) maxReads(now time.Time) (reads int, at time.Time) {
	if q.limit == 0 {
		return -1, time.Time{}
	}
	left := dayLength - q.elapsed(now)
	if q.day.Reads >= q.limit {
		return q.day.Reads, now.Add(left)
	}
	if q.above(now) {
		next := q.aboveAt.Add(left / time.Duration(q.limit-q.day.Reads))
		if wait := next.Sub(now.Round(0)); wait > 0 {
			return q.day.Reads, now.Add(wait)
		}
		return q.day.Reads + 1, time.Time{}
	}
	reads = int(q.paceLine(now))
	if reads > q.day.Reads {
		return reads, time.Time{}
	}
	share := (float64(q.day.Reads+1)/float64(q.limit) - paceStart) / (1 - paceStart)
	due := time.Duration(math.Ceil(share * float64(dayLength)))
	return reads, now.Add(max(due-q.elapsed(now), time.Millisecond))
}

// tight reports whether the pace line allows no further read now.
func (q *dailyQuota) tight(now time.Time) bool {
	if q.limit == 0 || q.at.IsZero() {
		return false
	}
	return q.paceLine(now)-float64(q.day.Reads) < 1
}

// needsPending reports whether the pending jobs have to be counted, which is
// done once per run.
func (q *dailyQuota) needsPending(now time.Time) bool { return q.pending < 0 && q.tight(now) }

// stretch returns the interval at which the daily quota is enough to read each
// pending job until midnight, and from then on with the next day's quota. It is
// zero if the quota is not tight.
func (q *dailyQuota) stretch(now time.Time) time.Duration {
	if !q.tight(now) || q.pending < 1 {
		return 0
	}
	left := max(0, dayLength-q.elapsed(now))
	reads := max(0, q.limit-q.day.Reads)
	if q.pending <= reads {
		return time.Duration(float64(left) * float64(q.pending) / float64(reads))
	}
	return left + time.Duration(float64(dayLength)*float64(q.pending-reads)/float64(q.limit))
}
