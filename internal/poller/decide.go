package poller

import (
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

	// A job that has been read longAfter times is read at intervals of at least
	// its age divided by longShare, and of at most longInterval: its end is then
	// known late by half a hundredth of the time it took, and a job that never
	// ends does not use up the daily quota.
	longAfter    = 100
	longShare    = 200
	longInterval = 10 * time.Minute
)

// decide returns what one read means for its row. It is the only place that
// knows the rules, and pure: fault is nil for a well-formed answer, stretch
// the interval that the day's allowance imposes (0 for none), random a number
// in [0, 1) for the jitter. Faults that concern every row, 401 and 429, do
// not come here.
func (s Settings) decide(job Job, lease LeaseID, a Answer, fault *ReadError, stretch time.Duration, random float64) Settlement {
	out := Settlement{JobID: job.ID, Lease: lease, Polled: true}
	out.Backoff = s.backoff(job, -1, stretch, random)
	if fault != nil {
		return s.decideFault(job, out, fault, stretch, random)
	}
	out.Status = a.Status
	if a.Terminal {
		out.State, out.Final, out.Delay = a.Status, a.Body, out.Backoff
		return out
	}
	hint := s.DefaultInterval
	if a.NextPoll > 0 {
		hint = max(s.MinInterval, min(a.NextPoll, s.MaxInterval))
	}
	out.Delay = spread(max(hint, stretch, job.longRunning(hint)), intervalJitter, random)
	return out
}

// longRunning returns the least interval that a job's age asks for, 0 for none.
// Where the age is not known, the number of reads stands for it.
func (job Job) longRunning(hint time.Duration) time.Duration {
	if job.Polls < longAfter {
		return 0
	}
	age := job.Age
	if age <= 0 {
		age = time.Duration(min(float64(job.Polls)*float64(hint), float64(longShare*longInterval)))
	}
	return min(age/longShare, longInterval)
}

func (s Settings) decideFault(job Job, out Settlement, fault *ReadError, stretch time.Duration, random float64) Settlement {
	out.Polled = fault.HTTPStatus != 0
	out.Class, out.Error, out.NotFound = fault.Class, fault.Error(), job.NotFound
	out.Delay = s.backoff(job, fault.RetryAfter, stretch, random)
	if fault.HTTPStatus == 404 || fault.HTTPStatus == 410 {
		out.NotFound++
		if !job.Answered && out.NotFound >= goneAnswers && job.Failing >= goneTime {
			out.State = StateNotFound
		}
	}
	return out
}

// refused returns the error that a settlement becomes where the table refuses
// it: the row stays pending and is read again after the back-off.
func (s Settlement) refused(r WriteError) Settlement {
	return Settlement{
		JobID: s.JobID, Lease: s.Lease, Delay: s.Backoff, Backoff: s.Backoff, Polled: s.Polled,
		Status: s.Status, Class: WriteRefused, Error: r.Error(), NotFound: s.NotFound,
	}
}

// backoff doubles from 15 s with each error in a row, up to the ceiling, with
// jitter below it; Retry-After and the day's stretch may ask for more.
func (s Settings) backoff(job Job, retryAfter, stretch time.Duration, random float64) time.Duration {
	ceiling := s.BackoffMax
	if job.Failing >= longTrouble {
		ceiling = max(ceiling, longBackoff)
	}
	d := min(backoffFirst, ceiling)
	for i := 0; i < job.ConsecutiveErrors && d < ceiling; i++ {
		d *= 2
	}
	d = min(spread(d, backoffJitter, random), ceiling)
	return max(d, min(retryAfter, retryAfterMax), stretch)
}

func spread(d time.Duration, share, random float64) time.Duration {
	return d + time.Duration(share*random*float64(d))
}
