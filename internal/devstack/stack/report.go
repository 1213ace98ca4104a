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

// job is a job's row at the end.
type job struct {
	JobID string
	State string
	Polls int
}

// report prints the jobs by state. It returns an error where a job has another
// state than it should have, is missing, or was read or billed twice.
func (s *stack) report(ctx context.Context, took time.Duration) error {
	rows, err := s.db.pool.Query(ctx, `SELECT job_id, state, polls FROM video_jobs`)
	if err != nil {
		return fmt.Errorf("read the jobs: %w", err)
	}
	jobs, err := pgx.CollectRows(rows, pgx.RowToStructByPos[job])
	if err != nil {
		return fmt.Errorf("read the jobs: %w", err)
	}
	late, stats := lateness(s.pollers), s.api.Stats()
	ticks, _ := s.clock.sum()
	s.say("\n%s", s.table(jobs))
	s.say("lateness of %d reads: half within %s, 99 %% within %s, all within %s",
		len(late), percentile(late, 0.5), percentile(late, 0.99), percentile(late, 1))
	s.say("ticks: %d (%d while another run was in flight, %d without a free sandbox, %d failed)",
		ticks.ticks, ticks.overlapped, ticks.skipped, ticks.failed)
	s.say("the API: %d reads, %d of a job that was being read already; billed %d jobs", stats.Reads, stats.Overlapping, stats.Billed)
	s.say("took %s", took.Round(time.Second))
	return s.judge(jobs)
}

func (s *stack) table(jobs []job) string {
	byState := map[string][]job{}
	for _, j := range jobs {
		byState[j.State] = append(byState[j.State], j)
	}
	var text strings.Builder
	w := tabwriter.NewWriter(&text, 0, 0, 3, ' ', 0)
	fmt.Fprintln(w, "state\tjobs\texpected\treads\treads a job")
	for _, state := range slices.Sorted(maps.Keys(byState)) {
		var reads, expected int
		for _, j := range byState[state] {
			reads += j.Polls
			if s.buyer.ends[j.JobID] == state {
				expected++
			}
		}
		n := len(byState[state])
		fmt.Fprintf(w, "%s\t%d\t%d\t%d\t%.1f\n", state, n, expected, reads, float64(reads)/float64(n))
	}
	w.Flush()
	return text.String()
}

func (s *stack) judge(jobs []job) error {
	var errs []error
	wrong := 0
	for _, j := range jobs {
		if j.State != "pending" && s.buyer.ends[j.JobID] != j.State {
			wrong++
		}
	}
	stats := s.api.Stats()
	for _, c := range []struct {
		what      string
		got, want int
	}{
		{"jobs in a wrong state", wrong, 0},
		{"jobs in the table", len(jobs), s.Jobs},
		{"reads of a job that was being read already", stats.Overlapping, 0},
		{"jobs billed", stats.Billed, s.Jobs},
	} {
		if c.got != c.want {
			errs = append(errs, fmt.Errorf("%s: %d, want %d", c.what, c.got, c.want))
		}
	}
	return errors.Join(errs...)
}
