package submit

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"
)

// Submitter buys jobs. It is safe for concurrent use.
type Submitter struct {
	Store   Store
	Poster  Poster
	Timeout time.Duration // of one post
	Backoff time.Duration // before the second post, doubling up to 16 s; 0: 1 s
}

const (
	longestRun     = time.Minute      // if the context has no deadline
	longestBackoff = 16 * time.Second // the API allows ten posts a minute for one key
	lookupTimeout  = 8 * time.Second  // of everything before the first write, such as the wait for a locked table
	minPostTime    = time.Second      // no post begins with less time left
)

// canRepeat is the end of the errors after which the order can be sent again
// and is not paid for twice.
const canRepeat = "it is safe to send the order again"

// Submit buys the job of an order, or returns the job that its key bought
// before. It posts again, with the same key and bytes, until ctx's deadline is
// near: a fifth of the time, at most 3 s, is reserved for the record. The errors
// are described at ErrPayload.
func (s *Submitter) Submit(ctx context.Context, r Request) (Result, error) {
	run, cancel := s.begin(ctx, r)
	defer cancel()
	if result, done, err := run.lookUp(); done {
		return result, err
	}
	for {
		sub, err := s.Store.Open(run.posting, r.Key, r.Video)
		if err != nil {
			return Result{}, fmt.Errorf("%w: open the intent: %w; %s", ErrDatabase, err, canRepeat)
		}
		if run.posts == 0 && !sub.New {
			sub, err = run.reopen(sub)
			if err != nil {
				return Result{}, err
			}
		}
		if result, done, err := run.known(sub); done {
			return result, err
		}
		answer, err := s.post(run.posting, r.Key, sub.Request)
		if err == nil {
			return run.accept(answer)
		}
		var postErr *PostError
		if !errors.As(err, &postErr) {
			return Result{}, fmt.Errorf("%w; %s", err, canRepeat)
		}
		if !run.wait(postErr) {
			return run.fail(postErr)
		}
	}
}

func (s *Submitter) post(ctx context.Context, key string, body []byte) (Answer, error) {
	ctx, cancel := context.WithTimeout(ctx, s.Timeout)
	defer cancel()
	return s.Poster.Submit(ctx, key, body)
}

// run is one order in progress.
type run struct {
	*Submitter
	Request
	posting    context.Context // ends when the time for posts is up
	recording  context.Context // ends later, and not with a cancellation
	backoff    time.Duration   // before the next post
	posts      int
	unanswered bool // a post of this key, now or earlier, had no answer
}

// begin divides the time until ctx's deadline.
func (s *Submitter) begin(ctx context.Context, r Request) (*run, context.CancelFunc) {
	deadline, ok := ctx.Deadline()
	if !ok {
		deadline = time.Now().Add(longestRun)
	}
	reserve := min(3*time.Second, time.Until(deadline)/5)
	posting, cancelPosting := context.WithDeadline(ctx, deadline.Add(-reserve))
	recording, cancelRecording := context.WithDeadline(context.WithoutCancel(ctx), deadline.Add(-reserve/5))
	return &run{Submitter: s, Request: r, posting: posting, recording: recording, backoff: cmp.Or(s.Backoff, time.Second)},
		func() { cancelPosting(); cancelRecording() }
}

// lookUp ends the run before the first write if the tables have the answer: the
// key's job, a reason not to post, or that they would refuse a bought job's row.
func (r *run) lookUp() (result Result, done bool, err error) {
	ctx, cancel := context.WithTimeout(r.posting, lookupTimeout)
	defer cancel()
	sub, err := r.Store.Find(ctx, r.Key)
	if err != nil {
		return Result{}, true, fmt.Errorf("%w: read the intent: %w; nothing was sent, %s", ErrDatabase, err, canRepeat)
	}
	if sub.State != "" {
		if result, done, err = r.known(sub); done {
			return result, true, err
		}
	}
	err = r.Store.Try(ctx, r.Key)
	if err == nil {
		return Result{}, false, nil
	}
	var refused *WriteError
	if !errors.As(err, &refused) {
		return Result{}, true, fmt.Errorf("%w: try to record a job: %w; nothing was sent, %s", ErrDatabase, err, canRepeat)
	}
	// A unique constraint may conflict with the row that a concurrent request
	// inserted for this key.
	if sub, err = r.Store.Find(ctx, r.Key); err == nil && sub.JobID != "" {
		return r.known(sub)
	}
	return Result{}, true, fmt.Errorf("%w: nothing was sent, since a bought job could not be recorded: %w; %s; then send the order again", ErrDatabase, refused, refused.Cure())
}

// known ends the run if the key's submission has a job or forbids a post.
func (r *run) known(sub Submission) (result Result, done bool, err error) {
	if err := checkIntent(sub, r.Request); err != nil {
		return Result{}, true, err
	}
	if sub.State == Accepted {
		return newResult(sub.JobID, sub.JobState, true), true, nil
	}
	if sub.JobID != "" {
		result, err = r.accept(Answer{JobID: sub.JobID, Hit: true})
		return result, true, err
	}
	return Result{}, false, nil
}

// reopen removes the outcome of an earlier run before the key is posted again. A
// run that is killed during its post then leaves an intent without an answer.
func (r *run) reopen(sub Submission) (Submission, error) {
	r.unanswered = sub.Unanswered || sub.State == Sending && sub.HTTPStatus == 0
	if sub.State != Rejected && sub.HTTPStatus == 0 || checkIntent(sub, r.Request) != nil {
		return sub, nil
	}
	sub, err := r.Store.Mark(r.posting, r.Key, Outcome{State: Sending, Unanswered: r.unanswered, LastError: sub.LastError})
	if err != nil {
		return Submission{}, fmt.Errorf("%w: open the intent again: %w; nothing was sent, %s", ErrDatabase, err, canRepeat)
	}
	return sub, nil
}

// wait pauses before the next post and reports whether there is one.
func (r *run) wait(e *PostError) bool {
	r.posts++
	verdict := judge(e)
	r.unanswered = r.unanswered || verdict == postAgain || verdict == unclear
	if verdict != postAgain && verdict != limited {
		return false
	}
	pause := max(r.backoff, e.RetryAfter)
	r.backoff = min(2*r.backoff, longestBackoff)
	deadline, _ := r.posting.Deadline()
	if time.Until(deadline) < pause+minPostTime {
		return false
	}
	timer := time.NewTimer(pause)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-r.posting.Done():
		return false
	}
}

// fail stores the outcome of a run that bought no job and returns its error,
// which wraps e.
func (r *run) fail(e *PostError) (Result, error) {
	outcome := Outcome{State: Sending, HTTPStatus: e.HTTPStatus, Unanswered: r.unanswered, LastError: e.Error()}
	switch judge(e) {
	case limited, rejected:
		note, advice := "", ""
		if r.unanswered {
			note = "; an earlier post had no answer"
		}
		if retryable(e.HTTPStatus) {
			advice = "; the same order, sent again, is posted again"
		}
		outcome.State, outcome.LastError = Rejected, outcome.LastError+note
		return r.mark(outcome, fmt.Errorf("%w: %w%s%s", ErrRejected, e, note, advice))
	case unauthorized:
		brief := *e
		brief.Message = "" // it may quote the API key
		outcome.LastError = brief.Error()
		return r.mark(outcome, fmt.Errorf("%w: the API refused the key, also after it was fetched again (%w); the intent is stored, %s", ErrUnauthorized, &brief, canRepeat))
	}
	return r.mark(outcome, fmt.Errorf("%w: no job after %d posts, the last ended with: %w; the intent is stored, %s", ErrUnanswered, r.posts, e, canRepeat))
}

// mark stores an outcome and returns end, or the job that a concurrent identical
// request bought meanwhile.
func (r *run) mark(outcome Outcome, end error) (Result, error) {
	sub, err := r.Store.Mark(r.recording, r.Key, outcome)
	if err != nil {
		return Result{}, fmt.Errorf("%w (the outcome could not be stored: %w)", end, err)
	}
	if sub.JobID != "" {
		result, _, err := r.known(sub)
		return result, err
	}
	return Result{}, end
}
