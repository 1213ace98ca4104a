package submit

import (
	"context"
	"errors"
	"fmt"
	"strings"
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
	worthPosting   = time.Second      // a post is not begun with less time than this left
)

// Submit buys the job of one request, or returns the one that its key bought
// before. It posts again, with the same key and bytes, for as long as ctx's
// deadline allows; the last of that time, a fifth and at most 3 s, is kept for
// the record. Errors are those of this package, see ErrPayload.
func (s *Submitter) Submit(ctx context.Context, r Request) (Result, error) {
	run, cancel := s.begin(ctx, r)
	defer cancel()
	for {
		sub, err := s.Store.Open(run.posting, r.Key, r.Video)
		if err != nil {
			return Result{}, fmt.Errorf("%w: open the intent: %w; it is safe to ask again", ErrDatabase, err)
		}
		if result, ok, err := before(sub, r); ok || err != nil {
			return result, err
		}
		if run.posts == 0 {
			run.unsure = sub.State == Sending && !sub.New || strings.HasSuffix(sub.LastError, unanswered)
		}
		if sub.State == Rejected {
			if _, err := s.Store.Mark(run.posting, r.Key, Sending, sub.LastError); err != nil {
				return Result{}, fmt.Errorf("%w: open the intent again: %w; it is safe to ask again", ErrDatabase, err)
			}
		}
		answer, err := s.post(run.posting, r.Key, sub.Request)
		if err == nil {
			return run.accept(answer)
		}
		var fault *Fault
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

// wait waits until the next post is to be made and tells whether it is.
func (r *run) wait(f *Fault) bool {
	r.posts++
	verdict := judge(f)
	if verdict != again && verdict != limited {
		return false
	}
	r.unsure = r.unsure || verdict == again
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
func (r *run) give(f *Fault) (Result, error) {
	switch judge(f) {
	case limited, rejected:
		note := ""
		if r.unsure {
			note = unanswered
		}
		advice := ""
		if worthwhile(f.HTTPStatus) {
			advice = "; asking again with the same key and body sends it again"
		}
		return r.mark(Rejected, f.Error()+note, fmt.Errorf("%w: %w%s%s", ErrRejected, f, note, advice))
	case unauthorized:
		mute := *f
		mute.Message = ""
		return r.mark(Sending, mute.Error(), fmt.Errorf("%w: the API refused the key, also after it was fetched anew (%w); "+
			"the intent is kept, it is safe to ask again", ErrUnauthorized, &mute))
	}
	return r.mark(Sending, f.Error(), fmt.Errorf("%w: no job, posts made: %d, the last ended with: %w; "+
		"the intent is kept, and it is safe to ask again with the same key and body", ErrUnanswered, r.posts, f))
}

// mark writes what a request ended in and returns its error, or the job that a
// twin bought meanwhile.
func (r *run) mark(state, lastError string, end error) (Result, error) {
	sub, err := r.Store.Mark(r.recording, r.Key, state, lastError)
	if err != nil {
		return Result{}, fmt.Errorf("%w (which could not be recorded: %w)", end, err)
	}
	if sub.State == Accepted {
		return Result{JobID: sub.JobID, State: jobState(sub), IdempotencyHit: true}, nil
	}
	return Result{}, end
}
