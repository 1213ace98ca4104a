package poller

import (
	"context"
	"log/slog"
	"time"
)

// warnings logs what a person should see. Some warnings are logged once per run
// only.
type warnings struct {
	log          *slog.Logger
	announcement bool // a refused announcement was logged
	cache        bool // an answer from a cache was logged
}

// refused names a row that the table refuses to change. A refused announcement
// is not the row's error, so it is logged once per run.
func (w *warnings) refused(ctx context.Context, e WriteError) {
	if e.Write == WriteAnnouncement {
		if w.announcement {
			return
		}
		w.announcement = true
	}
	w.log.WarnContext(ctx, "the table refuses to change a row", "job_id", e.JobID,
		"write", e.Write, "sqlstate", e.SQLState, "refused_by", e.Object)
}

// missing names a claimed row that is no longer found.
func (w *warnings) missing(ctx context.Context, jobID string) {
	w.log.WarnContext(ctx, "a claimed row is not found: it was deleted, or the index on job_id is broken", "job_id", jobID)
}

// cached warns once per run that a cache keeps answers for longer than the
// interval between reads. Finished jobs are then noticed late.
func (w *warnings) cached(ctx context.Context, age, interval time.Duration) {
	if age > interval && !w.cache {
		w.cache = true
		w.log.WarnContext(ctx, "a cache answers in place of the Sume API", "age_seconds", seconds(age))
	}
}
