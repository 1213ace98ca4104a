package submit

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// Submitter buys jobs. It may be used by several goroutines at once.
type Submitter struct {
	Store   Store
	Poster  Poster
	Timeout time.Duration // of one post
	Backoff time.Duration // before the second post, doubling from there to 16 s; 0 means 1 s
}

const (
	longestRun     = time.Minute      // of a request whose context has no deadline
	longestBackoff = 16 * time.Second // ten posts a minute are all that a key may make
	lookTimeout    = 8 * time.Second  // of what comes before the first write; a locked table is not waited for longer
	worthPosting   = time.Second      // a post is not begun with less time than this left
)

// Submit buys the job of one request, or returns the one that its key bought
// before. It posts again, with the same key and bytes, for as long as ctx's
// deadline allows; the last of that time, a fifth and at most 3 s, is kept for
// the record. Errors are those of this package, see ErrPayload.
func (s *Submitter) Submit(ctx context.Context, r Request) (Result, error) {
	run, cancel := s.begin(ctx, r)
	defer cancel()
	if result, done, err := run.look(); done {
		return result, err
	}
	for {
		sub, err := s.Store.Open(run.posting, r.Key, r.Video)
		if err != nil {
			return Result{}, fmt.Errorf("%w: open the intent: %w; it is safe to ask again", ErrDatabase, err)
		}
		if run.posts == 0 && !sub.New {
			sub, err = run.reopen(sub)
			if err != nil {
				return Result{}, err
			}
		}
		if result, done, err := run.settled(sub); done {
			return result, err
		}
		answer, err := s.post(run.posting, r.Key, sub.Request)
		if err == nil {
			return run.accept(answer)
		}
		var fault *PostError
		if !errors.As(err, &fault) {
			return Result{}, fmt.Errorf("%w; it is safe to ask again", err)
		}
		if !run.wait(fault) {
			return run.give(fault)
		}
	}
}

func (s *Submitter) post(ctx context.Context, key string, body []byte) (Answer, error) {
	ctx, cancel := context.WithTimeout(ctx, s.Timeout)
	defer cancel()
	return s.Poster.Submit(ctx, key, body)
}

// run is one request on its way.
type run struct {
	*Submitter
	Request
	posting   context.Context // ends with the time for posts
	recording context.Context // outlasts it, and a cancellation too
	backoff   time.Duration   // before the next post
	posts     int
	unsure    bool // a post of this key, now or earlier, had no answer
}

// begin divides the time that ctx leaves.
func (s *Submitter) begin(ctx context.Context, r Request) (*run, context.CancelFunc) {
	deadline, ok := ctx.Deadline()
	if !ok {
		deadline = time.Now().Add(longestRun)
	}
	reserve := min(3*time.Second, time.Until(deadline)/5)
	posting, cancelPosting := context.WithDeadline(ctx, deadline.Add(-reserve))
	recording, cancelRecording := context.WithDeadline(context.WithoutCancel(ctx), deadline.Add(-reserve/5))
	backoff := s.Backoff
	if backoff == 0 {
		backoff = time.Second
	}
	return &run{Submitter: s, Request: r, posting: posting, recording: recording, backoff: backoff},
		func() { cancelPosting(); cancelRecording() }
}

// look answers without a post where the table has the answer: the key's job, a
// reason not to post, or that it would refuse a bought job's row.
func (r *run) look() (result Result, done bool, err error) {
	ctx, cancel := context.WithTimeout(r.posting, lookTimeout)
	defer cancel()
	sub, err := r.Store.Find(ctx, r.Key)
	if err != nil {
		return Result{}, true, fmt.Errorf("%w: read the intent: %w; nothing was sent, and it is safe to ask again", ErrDatabase, err)
	}
	if sub.State != "" {
		if result, done, err = r.settled(sub); done {
			return result, true, err
		}
	}
	err = r.Store.Try(ctx, r.Key)
	var refusal *WriteError
	switch {
	case err == nil:
		return Result{}, false, nil
	case !errors.As(err, &refusal):
		return Result{}, true, fmt.Errorf("%w: try to record a job: %w; nothing was sent, and it is safe to ask again", ErrDatabase, err)
	}
	// The row that a concurrent request bought for this key may be what a unique
	// constraint conflicts with.
	if sub, err = r.Store.Find(ctx, r.Key); err == nil && sub.JobID != "" {
		return r.settled(sub)
	}
	return Result{}, true, fmt.Errorf("%w: nothing was sent, since a bought job could not be recorded: %w; %s; then ask again", ErrDatabase, refusal, refusal.Cure())
}

// settled answers with what the table holds, where nothing is to be posted.
func (r *run) settled(sub Submission) (result Result, done bool, err error) {
	if err := before(sub, r.Request); err != nil {
		return Result{}, true, err
	}
	switch {
	case sub.State == Accepted:
		return Result{JobID: sub.JobID, State: jobState(sub), IdempotencyHit: true}, true, nil
	case sub.JobID != "":
		result, err = r.accept(Answer{JobID: sub.JobID, Hit: true})
		return result, true, err
	}
	return Result{}, false, nil
}

// reopen takes the outcome of an earlier request back before the key is posted
// again, so that a run that dies in its post leaves an intent without an answer.
func (r *run) reopen(sub Submission) (Submission, error) {
	r.unsure = sub.Unanswered || sub.State == Sending && sub.HTTPStatus == 0
	if sub.State != Rejected && sub.HTTPStatus == 0 || before(sub, r.Request) != nil {
		return sub, nil
	}
	sub, err := r.Store.Mark(r.posting, r.Key, Outcome{State: Sending, Unanswered: r.unsure, LastError: sub.LastError})
	if err != nil {
		return Submission{}, fmt.Errorf("%w: open the intent again: %w; nothing was sent, and it is safe to ask again", ErrDatabase, err)
	}
	return sub, nil
}

// wait waits until the next post is to be made and reports whether it is.
func (r *run) wait(f *PostError) bool {
	r.posts++
	verdict := judge(f)
	r.unsure = r.unsure || verdict == again || verdict == unclear
	if verdict != again && verdict != limited {
		return false
	}
	pause := max(r.backoff, f.RetryAfter)
	r.backoff = min(2*r.backoff, longestBackoff)
	deadline, _ := r.posting.Deadline()
	if time.Until(deadline) < pause+worthPosting {
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

// give records the end of a request that brought no job, and says it. The
// error wraps the fault too.
func (r *run) give(f *PostError) (Result, error) {
	outcome := Outcome{State: Sending, HTTPStatus: f.HTTPStatus, Unanswered: r.unsure, LastError: f.Error()}
	switch judge(f) {
	case limited, rejected:
		note, advice := "", ""
		if r.unsure {
			note = "; an earlier post had no answer"
		}
		if retryable(f.HTTPStatus) {
			advice = "; asking again with the same key and body sends it again"
		}
		outcome.State, outcome.LastError = Rejected, outcome.LastError+note
		return r.mark(outcome, fmt.Errorf("%w: %w%s%s", ErrRejected, f, note, advice))
	case unauthorized:
		mute := *f
		mute.Message = ""
		outcome.LastError = mute.Error()
		return r.mark(outcome, fmt.Errorf("%w: the API refused the key, also after it was fetched again (%w); "+
			"the intent is kept, it is safe to ask again", ErrUnauthorized, &mute))
	}
	return r.mark(outcome, fmt.Errorf("%w: no job, posts made: %d, the last ended with: %w; "+
		"the intent is kept, and it is safe to ask again with the same key and body", ErrUnanswered, r.posts, f))
}

// mark writes what a request ended in and returns its error, or the job that a
// concurrent identical request bought meanwhile.
func (r *run) mark(outcome Outcome, end error) (Result, error) {
	sub, err := r.Store.Mark(r.recording, r.Key, outcome)
	if err != nil {
		return Result{}, fmt.Errorf("%w (which could not be recorded: %w)", end, err)
	}
	if sub.JobID != "" {
		result, _, err := r.settled(sub)
		return result, err
	}
	return Result{}, end
}
