package submit

import (
	"context"
	"fmt"
	"time"
)

const (
	acceptTimeout = 5 * time.Second // of one attempt to record a job
	firstPause    = 100 * time.Millisecond
	longestPause  = 2 * time.Second
)

// accept records a bought job, again and again while there is time: it is paid
// for already.
func (r *run) accept(answer Answer) (Result, error) {
	sub, err := r.record(answer.JobID)
	switch {
	case err != nil:
		return Result{}, fmt.Errorf("%w: %s is bought and not yet recorded: %w; "+
			"it is safe to ask again with the same key and body, which records it and buys nothing", ErrDatabase, answer.JobID, err)
	case sub.JobID != answer.JobID:
		return Result{}, fmt.Errorf("%w: this key bought %s, and now the API answered %s for it; both are followed", ErrTwoJobs, sub.JobID, answer.JobID)
	}
	return Result{JobID: sub.JobID, State: jobState(sub), IdempotencyHit: answer.Hit}, nil
}

func (r *run) record(jobID string) (sub Submission, err error) {
	for pause := firstPause; ; pause = min(2*pause, longestPause) {
		sub, err = r.acceptOnce(jobID)
		if err == nil {
			return sub, nil
		}
		timer := time.NewTimer(pause)
		select {
		case <-timer.C:
		case <-r.recording.Done():
			timer.Stop()
			return Submission{}, err
		}
	}
}

func (r *run) acceptOnce(jobID string) (Submission, error) {
	ctx, cancel := context.WithTimeout(r.recording, acceptTimeout)
	defer cancel()
	return r.Store.Accept(ctx, r.Key, jobID)
}
