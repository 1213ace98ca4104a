package stack

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
)

// progress is the state of the table at one time.
type progress struct {
	Pending, Due, InFlight, Finished, Reads int
	LateSeconds                             float64 // of the due row that waits longest
}

const progressSQL = `
SELECT count(*) FILTER (WHERE state = 'pending') AS pending,
       count(*) FILTER (WHERE state = 'pending' AND next_poll_at <= now() AND leased_until <= now()) AS due,
       count(*) FILTER (WHERE state = 'pending' AND leased_until > now()) AS in_flight,
       count(*) FILTER (WHERE state <> 'pending') AS finished,
       coalesce(sum(polls), 0) AS reads,
       greatest(0, coalesce(max(extract(epoch FROM now() - next_poll_at))
                   FILTER (WHERE state = 'pending' AND leased_until <= now()), 0))::float8 AS late_seconds
  FROM video_jobs`

func (d *database) progress(ctx context.Context) (progress, error) {
	rows, err := d.pool.Query(ctx, progressSQL)
	if err != nil {
		return progress{}, fmt.Errorf("read the progress: %w", err)
	}
	p, err := pgx.CollectExactlyOneRow(rows, pgx.RowToStructByName[progress])
	if err != nil {
		return progress{}, fmt.Errorf("read the progress: %w", err)
	}
	return p, nil
}

func (p progress) line(since time.Duration) string {
	return fmt.Sprintf("%4.0fs  pending %-4d due %-3d in flight %-3d finished %-4d reads %-5d late %.1fs",
		since.Seconds(), p.Pending, p.Due, p.InFlight, p.Finished, p.Reads, p.LateSeconds)
}
