package poller

import "time"

const (
	backoffJitter  = 0.25           // may only add
	intervalJitter = 0.10           // may only add
	retryAfterMax  = 24 * time.Hour // no Retry-After holds up a paid job for longer
	goneAnswers    = 8              // answers of 404 or 410, …
	goneTime       = time.Hour      // … over at least this time, and no good answer ever: not_found
)

// decide returns what one read means for its row. It is a pure function, and
// the only place with these rules. err is nil for a well-formed answer, stretch
// is the daily quota's (0 for none), random is a number in [0, 1) for the
// jitter. Errors that concern every row, 401 and 429, do not come here.
func (s Settings) decide(job Job, lease LeaseID, a Answer, err *ReadError, stretch time.Duration, random float64) Settlement {
	out := Settlement{JobID: job.ID, Lease: lease, Polled: true}
	out.Backoff = s.backoff(job, 0, stretch, random)
	if err != nil {
		return s.decideError(job, out, err, stretch, random)
	}
	out.Status = a.Status
	if a.Terminal {
		out.State, out.Final, out.Delay = a.Status, a.Body, out.Backoff
		return out
	}
	interval := s.DefaultInterval
	if a.NextPoll > 0 {
		interval = max(s.MinInterval, min(a.NextPoll, s.MaxInterval))
	}
	out.Delay = spread(max(interval, stretch, job.longRunning(interval)), intervalJitter, random)
	return out
}

// longRunning returns the shortest interval for a job that has been read many
// times: a two-hundredth of its age. 0 means that any interval will do. The end
// of such a job is noticed with a delay of at most 0.5 % of its age, and a job
// that never finishes does not use up the daily quota. If the age is not known,
// it is estimated from the number of reads.
func (job Job) longRunning(interval time.Duration) time.Duration {
	const (
		after = 100 // reads
		share = 200
		most  = 10 * time.Minute
	)
	if job.Polls < after {
		return 0
	}
	age := job.Age
	if age <= 0 {
		age = time.Duration(min(float64(job.Polls)*float64(interval), float64(share*most)))
	}
	return min(age/share, most)
}

func (s Settings) decideError(job Job, out Settlement, err *ReadError, stretch time.Duration, random float64) Settlement {
	out.Polled = err.HTTPStatus != 0
	out.Class, out.Error, out.NotFound = err.Class, err.Error(), job.NotFound
	out.Delay = s.backoff(job, err.RetryAfter, stretch, random)
	if err.HTTPStatus == 404 || err.HTTPStatus == 410 {
		out.NotFound++
		if !job.Answered && out.NotFound >= goneAnswers && job.Failing >= goneTime {
			out.State = StateNotFound
		}
	}
	return out
}

// refused returns the settlement to write where the table refuses s: the row
// stays pending with an error and is read again after the back-off.
func (s Settlement) refused(e WriteError) Settlement {
	return Settlement{
		JobID: s.JobID, Lease: s.Lease, Delay: s.Backoff, Backoff: s.Backoff, Polled: s.Polled,
		Status: s.Status, Class: WriteRefused, Error: e.Error(), NotFound: s.NotFound,
	}
}

// backoff returns the back-off after an error. It doubles with each error in a
// row, up to BackoffMax, which includes the jitter. After a day of nothing but
// errors the bound is 6 h, or BackoffMax if that is longer. Retry-After and the
// stretch may ask for more.
func (s Settings) backoff(job Job, retryAfter, stretch time.Duration, random float64) time.Duration {
	const first = 15 * time.Second
	longest := s.BackoffMax
	if job.Failing >= dayLength {
		longest = max(longest, 6*time.Hour)
	}
	d := min(first, longest)
	for i := 0; i < job.ConsecutiveErrors && d < longest; i++ {
		d *= 2
	}
	d = min(spread(d, backoffJitter, random), longest)
	return max(d, min(retryAfter, retryAfterMax), stretch)
}

func spread(d time.Duration, share, random float64) time.Duration {
	return d + time.Duration(share*random*float64(d))
}
