package stack

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/jackc/pgx/v5"
)

// outcome is what became of one job.
type outcome struct {
	JobID string
	State string
	Polls int
}

const outcomesSQL = `SELECT job_id, state, polls FROM video_jobs ORDER BY job_id`

// report writes the table of what came of the jobs and returns an error where
// it is not what had to come of them.
func (s *stack) report(ctx context.Context, took time.Duration) error {
	rows, err := s.db.pool.Query(ctx, outcomesSQL)
	if err != nil {
		return fmt.Errorf("read the outcomes: %w", err)
	}
	outcomes, err := pgx.CollectRows(rows, pgx.RowToStructByPos[outcome])
	if err != nil {
		return fmt.Errorf("read the outcomes: %w", err)
	}
	s.screen.say("\n%s", s.table(outcomes, took))
	return s.judge(outcomes)
}

func (s *stack) table(outcomes []outcome, took time.Duration) string {
	var text strings.Builder
	w := tabwriter.NewWriter(&text, 0, 0, 3, ' ', 0)
	fmt.Fprintln(w, "state\tjobs\tright\treads\treads a job\tleast\tmost")
	byState := map[string][]outcome{}
	for _, o := range outcomes {
		byState[o.State] = append(byState[o.State], o)
	}
	for _, state := range slices.Sorted(maps.Keys(byState)) {
		s.row(w, state, byState[state])
	}
	s.row(w, "all", outcomes)
	w.Flush()
	l, c, stats := readLateness(s.pollers), s.clock.sum(), s.api.Stats()
	fmt.Fprintf(&text, "\nlateness of %d reads: half within %s, 99 in 100 within %s, none past %s\n",
		l.reads, round(l.p50), round(l.p99), round(l.max))
	fmt.Fprintf(&text, "ticks: %d (%d while another run went on, %d found no free sandbox, %d failed)\n",
		c.ticks, c.overlapped, c.skipped, c.failed)
	fmt.Fprintf(&text, "the API saw %d reads, %d of them of a job that was being read, and billed %d jobs\n",
		stats.Reads, stats.Overlapping, stats.Billed)
	fmt.Fprintf(&text, "took %s", took.Round(time.Second))
	return text.String()
}

// row writes one line of the table.
func (s *stack) row(w *tabwriter.Writer, name string, outcomes []outcome) {
	if len(outcomes) == 0 {
		return
	}
	var reads, right int
	least, most := outcomes[0].Polls, 0
	for _, o := range outcomes {
		reads += o.Polls
		least, most = min(least, o.Polls), max(most, o.Polls)
		if s.buyer.ends[o.JobID] == o.State {
			right++
		}
	}
	fmt.Fprintf(w, "%s\t%d\t%d\t%d\t%.1f\t%d\t%d\n",
		name, len(outcomes), right, reads, float64(reads)/float64(len(outcomes)), least, most)
}

// judge compares what came of the jobs with what they were bound for.
func (s *stack) judge(outcomes []outcome) error {
	var errs []error
	wrong := 0
	for _, o := range outcomes {
		if o.State != "pending" && s.buyer.ends[o.JobID] != o.State {
			wrong++
		}
	}
	if wrong > 0 {
		errs = append(errs, fmt.Errorf("%d jobs came to another end than they had to", wrong))
	}
	if len(outcomes) != s.Jobs {
		errs = append(errs, fmt.Errorf("%d jobs are in the table in place of %d", len(outcomes), s.Jobs))
	}
	stats := s.api.Stats()
	if stats.Overlapping > 0 {
		errs = append(errs, fmt.Errorf("%d reads were of a job that was being read", stats.Overlapping))
	}
	if stats.Billed != s.Jobs {
		errs = append(errs, fmt.Errorf("%d jobs were billed in place of %d", stats.Billed, s.Jobs))
	}
	return errors.Join(errs...)
}

func round(d time.Duration) time.Duration { return d.Round(time.Millisecond) }
