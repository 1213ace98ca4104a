package submit

import (
	"cmp"
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

// accept records a bought job. It is paid for already, so accept tries again
// while there is time and the table does not refuse the row.
func (r *run) accept(answer Answer) (Result, error) {
	id := answer.JobID
	sub, err := r.record(id)
	if err == nil && sub.JobID == id {
		return newResult(id, sub.JobState, answer.Hit), nil
	}
	if err == nil && sub.State != Accepted { // an earlier run bought sub.JobID with this key and ended before the record
		id = sub.JobID
		_, err = r.record(id)
	}
	var refused *WriteError
	if errors.As(err, &refused) {
		return r.unrecorded(id, refused)
	}
	if err != nil {
		return Result{}, fmt.Errorf("%w: %s is bought and not yet recorded: %w; %s: that records the job and buys nothing", ErrDatabase, id, err, canRepeat)
	}
	return Result{}, fmt.Errorf("%w: this key bought %s, and now the API answered %s for it; both are polled", ErrTwoJobs, sub.JobID, answer.JobID)
}

func newResult(jobID, jobState string, hit bool) Result {
	return Result{JobID: jobID, State: cmp.Or(jobState, "unknown"), IdempotencyHit: hit}
}

// unrecorded stores the id of a bought job whose row the table refused. If
// another run inserted the row meanwhile, the job is accepted.
func (r *run) unrecorded(jobID string, refused *WriteError) (Result, error) {
	refused.JobID = jobID
	ctx, cancel := context.WithTimeout(r.recording, acceptTimeout)
	defer cancel()
	sub, err := r.Store.Unrecord(ctx, r.Key, jobID, refused.Error()+"; "+refused.Cure())
	if err == nil && sub.State == Accepted && sub.JobID == jobID {
		return newResult(jobID, sub.JobState, true), nil
	}
	stored := "its id is stored with the key"
	if err != nil {
		stored = fmt.Sprintf("note this id, it could not be stored (%v)", err)
	}
	return Result{}, fmt.Errorf("%w: %s is bought and not recorded, since the table refused its row: %w; %s; %s; "+
		"then send the order again: that records the job and buys nothing", ErrUnrecorded, jobID, refused, stored, refused.Cure())
}

// record stores the job's id, then its row. It tries again until the table
// refuses or the time is up.
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
