package requests

import (
	"context"
	"fmt"
	"slices"

	"github.com/jackc/pgx/v5"

	"sumepoller/internal/operator"
	"sumepoller/internal/postgres/statement"
)

var (
	dueSQL              = statement.Read(files, "inspect_due")
	longRunningSQL      = statement.Read(files, "inspect_long_running")
	failingSQL          = statement.Read(files, "inspect_failing")
	submissionsTotalSQL = statement.Read(files, "inspect_submissions_total")
	submissionsSQL      = statement.Read(files, "inspect_submissions")
	jobsSQL             = statement.Read(files, "inspect_jobs")
)

func listDue(ctx context.Context, tx pgx.Tx, seen *operator.Inspection, limit int) error {
	var due operator.DueJob
	rows, err := tx.Query(ctx, dueSQL, statement.Args{"limit": int64(min(limit, operator.MaxInspectListed)), "longest_lease": longestLease})
	seen.OldestDue, err = collect(rows, err, &due,
		&due.JobID, &due.DueSeconds, &due.LostLeases, timeField{&due.LeasedUntil}, timeField{&due.LastPolledAt})
	if err != nil {
		return fmt.Errorf("list due jobs: %w", err)
	}
	return nil
}

func listLongRunning(ctx context.Context, tx pgx.Tx, seen *operator.Inspection, limit int) error {
	seen.LongRunning = []operator.LongJob{}
	if seen.LongRunningTotal == 0 {
		return nil
	}
	var long operator.LongJob
	rows, err := tx.Query(ctx, longRunningSQL, statement.Args{
		"long_running": operator.LongRunning.Microseconds(), "limit": int64(min(limit, operator.MaxInspectListed)), "max_pending": int64(maxPending),
	})
	seen.LongRunning, err = collect(rows, err, &long,
		&long.JobID, timeField{&long.CreatedAt}, &long.AgeSeconds, &long.Polls, &long.SumeStatus, timeField{&long.NextPollAt})
	if err != nil {
		return fmt.Errorf("list long-running jobs: %w", err)
	}
	return nil
}

func listFailing(ctx context.Context, tx pgx.Tx, seen *operator.Inspection, limit int) error {
	seen.Failing = []operator.FailingJob{}
	if seen.FailingTotal == 0 {
		return nil
	}
	var failing operator.FailingJob
	rows, err := tx.Query(ctx, failingSQL, statement.Args{"limit": int64(limit), "max_pending": int64(maxPending)})
	seen.Failing, err = collect(rows, err, &failing,
		&failing.JobID, timeField{&failing.FailingSince}, &failing.ConsecutiveErrors, &failing.LastError, timeField{&failing.LastPolledAt}, timeField{&failing.NextPollAt})
	if err != nil {
		return fmt.Errorf("list failing jobs: %w", err)
	}
	for i := range seen.Failing {
		seen.Failing[i].LastError = redact(seen.Failing[i].LastError)
	}
	return nil
}

func listSubmissions(ctx context.Context, tx pgx.Tx, seen *operator.Inspection, limit int) error {
	err := tx.QueryRow(ctx, submissionsTotalSQL, statement.Args{"max_pending": int64(maxPending)}).
		Scan(&seen.SubmissionsTotal, &seen.SubmissionsStuck)
	if err != nil {
		return fmt.Errorf("count submissions: %w", err)
	}
	var sub operator.Unfinished
	rows, err := tx.Query(ctx, submissionsSQL, statement.Args{"limit": int64(limit)})
	if seen.Submissions, err = collect(rows, err, &sub, &sub.IdempotencyKey, &sub.State, &sub.JobID, &sub.AgeSeconds, &sub.LastError); err != nil {
		return fmt.Errorf("list submissions: %w", err)
	}
	for i := range seen.Submissions {
		seen.Submissions[i].LastError = redactPointer(seen.Submissions[i].LastError)
	}
	return nil
}

// showJobs shows rows by id.
func showJobs(ctx context.Context, tx pgx.Tx, seen *operator.Inspection, ids []string) error {
	var j operator.JobRow
	rows, err := tx.Query(ctx, jobsSQL, statement.Args{"job_ids": ids, "longest_lease": longestLease})
	seen.Jobs, err = collect(rows, err, &j,
		&j.JobID, &j.State, &j.SumeStatus, timeField{&j.CreatedAt}, timeField{&j.NextPollAt}, timeField{&j.LeasedUntil},
		timeField{&j.LastPolledAt}, timeField{&j.FinishedAt}, &j.Polls, &j.ConsecutiveErrors, timeField{&j.FailingSince}, &j.LostLeases, &j.LastError)
	if err != nil {
		return fmt.Errorf("show jobs: %w", err)
	}
	known := make(map[string]bool, len(seen.Jobs))
	for i := range seen.Jobs {
		known[seen.Jobs[i].JobID] = true
		seen.Jobs[i].LastError = redactPointer(seen.Jobs[i].LastError)
	}
	for _, id := range ids {
		if !known[id] {
			seen.Unknown = append(seen.Unknown, id)
		}
	}
	slices.Sort(seen.Unknown)
	return nil
}
