package stack

import (
	"context"
	"fmt"
	"time"
)

// snapshot is the table at a moment.
type snapshot struct {
	pending, due, inFlight, reads int
	finished                      map[string]int // by state
	late                          time.Duration  // of the latest due row
}

// lookSQL reads one row per state; the figures of the pending ones stand in
// theirs.
const lookSQL = `
SELECT state,
       count(*),
       sum(polls),
       count(*) FILTER (WHERE next_poll_at <= now() AND leased_until <= now()), -- due
       count(*) FILTER (WHERE leased_until > now()),                            -- in flight
       coalesce(max(extract(epoch FROM now() - next_poll_at))
                FILTER (WHERE leased_until <= now()), 0)::float8                -- late
FROM video_jobs
GROUP BY state`

// look reads the table.
func (d *database) look(ctx context.Context) (snapshot, error) {
	s := snapshot{finished: map[string]int{}}
	rows, err := d.pool.Query(ctx, lookSQL)
	if err != nil {
		return s, fmt.Errorf("look at the table: %w", err)
	}
	defer rows.Close()
	for rows.Next() {
		var (
			state                      string
			jobs, reads, due, inFlight int
			late                       float64
		)
		if err := rows.Scan(&state, &jobs, &reads, &due, &inFlight, &late); err != nil {
			return s, fmt.Errorf("look at the table: %w", err)
		}
		s.reads += reads
		if state != "pending" {
			s.finished[state] = jobs
			continue
		}
		s.pending, s.due, s.inFlight = jobs, due, inFlight
		s.late = max(0, time.Duration(late*float64(time.Second)))
	}
	return s, rows.Err()
}

// line shows a snapshot. Every state that jobs can come to here has its place,
// so that the line keeps its form.
func (s snapshot) line(since time.Duration) string {
	return fmt.Sprintf("%4.0fs  pending %-4d due %-3d in flight %-3d completed %-4d failed %-3d canceled %-3d expired %-3d reads %-5d late %.1fs",
		since.Seconds(), s.pending, s.due, s.inFlight,
		s.finished["completed"], s.finished["failed"], s.finished["canceled"], s.finished["expired"],
		s.reads, s.late.Seconds())
}
