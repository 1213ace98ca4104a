package operator

import "errors"

// StateStopped is the state of a job that a stop has finished.
const StateStopped = "stopped"

// StopNote is in every answer to a stop.
const StopNote = "polling ended here only: nothing is canceled or saved at Sume; " +
	"a backfill with these job_ids polls them again"

// Stop finishes pending rows without reading them.
type Stop struct {
	JobIDs []string `json:"job_ids"` // each once
}

func (s *Stop) request() (Request, error) {
	var err error
	if s.JobIDs, err = distinctIDs("stop.job_ids", s.JobIDs); err != nil {
		return Request{}, err
	}
	if len(s.JobIDs) == 0 {
		return Request{}, errors.New("stop.job_ids: selects nothing; give at least one id")
	}
	return Request{Mode: ModeStop, Stop: s}, nil
}

// Stopped is the answer to a stop. The caller sets RunID; Mode and Note are set.
type Stopped struct {
	RunID           string         `json:"run_id"`
	Mode            string         `json:"mode"`
	Finished        map[string]int `json:"finished"`         // stopped: how many rows this request finished
	AlreadyFinished int            `json:"already_finished"` // in the table, not pending, left as they are
	Unknown         int            `json:"unknown"`          // not in the table
	Note            string         `json:"note"`
}
