package poller

import (
	"regexp"
	"strconv"
	"time"
)

const (
	backoffFirst   = 15 * time.Second
	backoffJitter  = 0.25           // may only add
	intervalJitter = 0.10           // may only add
	longTrouble    = 24 * time.Hour // nothing but errors for so long …
	longBackoff    = 6 * time.Hour  // … and this is the ceiling, where the set one is lower
	retryAfterMax  = 24 * time.Hour // no server's wish holds a paid job up for longer
	goneAnswers    = 8              // answers of 404 or 410 …
	goneTime       = time.Hour      // … over at least this, and none good ever: not_found
)

// decide returns what one read means for its row. It is the only place that
// knows the rules, and pure: fault is nil for a well-formed answer, stretch
// the interval that the day's allowance imposes (0 for none), random a number
// in [0, 1) for the jitter. Faults that concern every row, 401 and 429, do
// not come here.
func (s Settings) decide(job Job, lease LeaseID, a Answer, fault *Fault, stretch time.Duration, random float64) Settlement {
	out := Settlement{JobID: job.ID, Lease: lease, Polled: true}
	if fault != nil {
		return s.decideFault(job, out, fault, stretch, random)
	}
	out.Status = a.Status
	if a.Terminal {
		out.State, out.Final = a.Status, a.Body
		return out
	}
	hint := s.DefaultInterval
	if a.NextPoll > 0 {
		hint = max(s.MinInterval, min(a.NextPoll, s.MaxInterval))
	}
	out.Delay = spread(max(hint, stretch), intervalJitter, random)
	return out
}

func (s Settings) decideFault(job Job, out Settlement, fault *Fault, stretch time.Duration, random float64) Settlement {
	out.Polled = fault.HTTPStatus != 0
	out.Error = fault.Error()
	gone := goneCount(job)
	if fault.HTTPStatus == 404 || fault.HTTPStatus == 410 {
		gone++
		if !job.Answered && gone >= goneAnswers && job.Failing >= goneTime {
			out.State = StateNotFound
		}
	}
	if gone > 0 {
		out.Error += " not_found=" + strconv.Itoa(gone)
	}
	if out.State == "" {
		out.Delay = s.backoff(job, fault, stretch, random)
	}
	return out
}

// backoff doubles from 15 s with each error in a row, up to the ceiling, with
// jitter below it; Retry-After and the day's stretch may ask for more.
func (s Settings) backoff(job Job, fault *Fault, stretch time.Duration, random float64) time.Duration {
	ceiling := s.BackoffMax
	if job.Failing >= longTrouble {
		ceiling = max(ceiling, longBackoff)
	}
	d := min(backoffFirst, ceiling)
	for i := 0; i < job.ConsecutiveErrors && d < ceiling; i++ {
		d *= 2
	}
	d = min(spread(d, backoffJitter, random), ceiling)
	return max(d, min(fault.RetryAfter, retryAfterMax), stretch)
}

func spread(d time.Duration, share, random float64) time.Duration {
	return d + time.Duration(share*random*float64(d))
}

var goneMark = regexp.MustCompile(` not_found=(\d+)$`)

// goneCount returns how many answers of 404 or 410 the row's streak of errors
// holds. last_error carries the count.
func goneCount(job Job) int {
	if job.ConsecutiveErrors == 0 {
		return 0
	}
	found := goneMark.FindStringSubmatch(job.LastError)
	if found == nil {
		return 0
	}
	n, _ := strconv.Atoi(found[1])
	return n
}
