package submit

import (
	"context"
	"errors"
	"fmt"
	"time"
)

const (
	acceptTimeout = 5 * time.Second // of one attempt to record a job
	firstPause    = 100 * time.Millisecond
	longestPause  = 2 * time.Second
)

// accept records a bought job, again and again while there is time and the
// table does not refuse it: it is paid for already.
func (r *run) accept(answer Answer) (Result, error) {
	id := answer.JobID
	sub, err := r.record(id)
	if err == nil && sub.JobID == id {
		return Result{JobID: id, State: jobState(sub), IdempotencyHit: answer.Hit}, nil
	}
	if err == nil && sub.State != Accepted { // the key's first job, of a run that ended before it was recorded
		id = sub.JobID
		_, err = r.record(id)
	}
	var refusal *WriteError
	switch {
	case errors.As(err, &refusal):
		return r.unrecorded(id, refusal)
	case err != nil:
		return Result{}, fmt.Errorf("%w: %s is bought and not yet recorded: %w; "+
			"it is safe to ask again with the same key and body, which records it and buys nothing", ErrDatabase, id, err)
	}
	return Result{}, fmt.Errorf("%w: this key bought %s, and now the API answered %s for it; both are followed", ErrTwoJobs, sub.JobID, answer.JobID)
}

// unrecorded keeps a bought job whose row the table refused. A row that someone
// else inserted meanwhile is as good.
func (r *run) unrecorded(jobID string, refusal *WriteError) (Result, error) {
	refusal.JobID = jobID
	ctx, cancel := context.WithTimeout(r.recording, acceptTimeout)
	defer cancel()
	sub, err := r.Store.Unrecord(ctx, r.Key, jobID, refusal.Error()+"; "+refusal.Cure())
	if err == nil && sub.State == Accepted && sub.JobID == jobID {
		return Result{JobID: jobID, State: jobState(sub), IdempotencyHit: true}, nil
	}
	kept := "the id is kept with the key"
	if err != nil {
		kept = fmt.Sprintf("keep this id, it could not be stored (%v)", err)
	}
	return Result{}, fmt.Errorf("%w: %s is bought and not followed, since its row was refused: %w; %s; %s; "+
		"then ask again with the same key and body, which records it and buys nothing", ErrUnrecorded, jobID, refusal, kept, refusal.Cure())
}

func (r *run) record(jobID string) (sub Submission, err error) {
	for pause := firstPause; ; pause = min(2*pause, longestPause) {
		sub, err = r.acceptOnce(jobID)
		if err == nil || errors.As(err, new(*WriteError)) {
			return sub, err
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
	if err := r.Store.Keep(ctx, r.Key, jobID); err != nil {
		return Submission{}, err
	}
	return r.Store.Accept(ctx, r.Key, jobID)
}
