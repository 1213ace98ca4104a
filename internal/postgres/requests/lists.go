package requests

import (
	"context"
	"fmt"
	"slices"

	"github.com/jackc/pgx/v5"

	"sumepoller/internal/operator"
)

// leasedNow holds for a row v under a lease. One that ends later than any lease
// can was written before a clock jumped: a claim takes that row.
const leasedNow = `(v.leased_until > statement_timestamp() AND v.leased_until <= statement_timestamp() + interval '15 minutes')`

// oldestDue lists pending rows past their due time. It walks the due index in
// its order and reads no more rows than it shows: the sub-select as a limit
// hides from the planner how few rows its statistics hold for due.
var oldestDue = `
SELECT v.job_id, ` + elapsedSince("v.next_poll_at") + ` / 1000000, v.lost_leases,
       CASE WHEN ` + leasedNow + ` THEN ` + shownTime("v.leased_until") + ` END,
       ` + shownTime("v.last_polled_at") + `
  FROM (SELECT j.job_id, j.next_poll_at, j.lost_leases, j.leased_until, j.last_polled_at
          FROM video_jobs j
         WHERE j.state = 'pending' AND j.next_poll_at <= statement_timestamp()
         ORDER BY j.next_poll_at
         LIMIT (SELECT $1::bigint)) v
 ORDER BY v.next_poll_at, v.job_id`

// longRunning lists pending rows that were made more than $1 microseconds ago,
// among the first $3 of the due index. Only the rows shown have their times
// converted, here and below: that costs more than finding them.
var longRunning = `
SELECT v.job_id, ` + shownTime("v.created_at") + `, ` + elapsedSince("v.created_at") + ` / 1000000, v.polls, v.sume_status,
       ` + shownTime("v.next_poll_at") + `
  FROM (SELECT p.job_id, p.created_at, p.polls, p.sume_status, p.next_poll_at
          FROM (SELECT j.job_id, j.created_at, j.polls, j.sume_status, j.next_poll_at
                  FROM video_jobs j
                 WHERE j.state = 'pending'
                 LIMIT $3::bigint) p
         WHERE p.created_at <= statement_timestamp() - $1::bigint * interval '1 microsecond'
         ORDER BY p.created_at, p.job_id
         LIMIT $2::bigint) v
 ORDER BY v.created_at, v.job_id`

// failingJobs lists pending rows in back-off, the longest failing first, among
// the first $2 of the due index.
var failingJobs = `
SELECT v.job_id, ` + shownTime("v.failing_since") + `, v.consecutive_errors, coalesce(v.last_error, ''),
       ` + shownTime("v.last_polled_at") + `, ` + shownTime("v.next_poll_at") + `
  FROM (SELECT p.job_id, p.failing_since, p.consecutive_errors, p.last_error, p.last_polled_at, p.next_poll_at
          FROM (SELECT j.job_id, j.failing_since, j.consecutive_errors, j.last_error, j.last_polled_at, j.next_poll_at
                  FROM video_jobs j
                 WHERE j.state = 'pending'
                 LIMIT $2::bigint) p
         WHERE p.failing_since IS NOT NULL
         ORDER BY p.failing_since, p.job_id
         LIMIT $1::bigint) v
 ORDER BY v.failing_since, v.job_id`

// countUnfinished counts intents that have no recorded answer, and bought jobs
// whose rows the table refused.
const countUnfinished = `
SELECT count(*), count(*) FILTER (WHERE s.state = 'unrecorded' OR s.created_at <= statement_timestamp() - $1::bigint * interval '1 microsecond')
  FROM (SELECT created_at, state FROM video_submissions WHERE state IN ('sending', 'unrecorded') LIMIT $2::bigint) s`

// unfinished lists them, the oldest first; never the request.
var unfinished = `
SELECT s.idempotency_key, s.state, s.job_id, ` + elapsedSince("s.created_at") + ` / 1000000, s.last_error
  FROM video_submissions s
 WHERE s.state IN ('sending', 'unrecorded')
 ORDER BY s.created_at, s.idempotency_key
 LIMIT $1::bigint`

// showJobs reads rows by id; never final_status or idempotency_key.
var showJobs = `
SELECT v.job_id, coalesce(v.state, ''), v.sume_status, ` + shownTime("v.created_at") + `, ` + shownTime("v.next_poll_at") + `,
       CASE WHEN ` + leasedNow + ` THEN ` + shownTime("v.leased_until") + ` END,
       ` + shownTime("v.last_polled_at") + `, ` + shownTime("v.finished_at") + `, v.polls, v.consecutive_errors,
       ` + shownTime("v.failing_since") + `, v.lost_leases, v.last_error
  FROM video_jobs v
 WHERE v.job_id = ANY ($1::text[])
 ORDER BY v.job_id`

// lookAtTrouble lists what does not get on: jobs that wait, run for too long or
// fail, and unfinished posts. A list that look counted as empty is not walked for.
func lookAtTrouble(ctx context.Context, tx pgx.Tx, seen *operator.Inspection, limit int) error {
	if err := lookAtDue(ctx, tx, seen, int64(min(limit, operator.MaxInspectListed))); err != nil {
		return err
	}
	if err := lookAtFailing(ctx, tx, seen, limit); err != nil {
		return err
	}
	return lookAtSubmissions(ctx, tx, seen, limit)
}

func lookAtDue(ctx context.Context, tx pgx.Tx, seen *operator.Inspection, limit int64) error {
	var due operator.DueJob
	rows, err := tx.Query(ctx, oldestDue, limit)
	seen.OldestDue, err = collect(rows, err, &due,
		&due.JobID, &due.DueSeconds, &due.LostLeases, instant{&due.LeasedUntil}, instant{&due.LastPolledAt})
	if err != nil {
		return fmt.Errorf("list due jobs: %w", err)
	}
	seen.LongRunning = []operator.LongJob{}
	if seen.LongRunningTotal == 0 {
		return nil
	}
	var long operator.LongJob
	rows, err = tx.Query(ctx, longRunning, operator.LongRunning.Microseconds(), limit, int64(maxPendingSeen))
	seen.LongRunning, err = collect(rows, err, &long,
		&long.JobID, instant{&long.CreatedAt}, &long.AgeSeconds, &long.Polls, &long.SumeStatus, instant{&long.NextPollAt})
	if err != nil {
		return fmt.Errorf("list long-running jobs: %w", err)
	}
	return nil
}

func lookAtFailing(ctx context.Context, tx pgx.Tx, seen *operator.Inspection, limit int) error {
	seen.Failing = []operator.FailingJob{}
	if seen.FailingTotal == 0 {
		return nil
	}
	var failing operator.FailingJob
	rows, err := tx.Query(ctx, failingJobs, int64(limit), int64(maxPendingSeen))
	seen.Failing, err = collect(rows, err, &failing,
		&failing.JobID, instant{&failing.FailingSince}, &failing.ConsecutiveErrors, &failing.LastError, instant{&failing.LastPolledAt}, instant{&failing.NextPollAt})
	if err != nil {
		return fmt.Errorf("list failing jobs: %w", err)
	}
	for i := range seen.Failing {
		seen.Failing[i].LastError = tell(seen.Failing[i].LastError)
	}
	return nil
}

func lookAtSubmissions(ctx context.Context, tx pgx.Tx, seen *operator.Inspection, limit int) error {
	err := tx.QueryRow(ctx, countUnfinished, stuckAfter.Microseconds(), int64(maxPendingSeen)).
		Scan(&seen.SubmissionsTotal, &seen.SubmissionsStuck)
	if err != nil {
		return fmt.Errorf("count submissions: %w", err)
	}
	var sub operator.Unfinished
	rows, err := tx.Query(ctx, unfinished, int64(limit))
	if seen.Submissions, err = collect(rows, err, &sub, &sub.IdempotencyKey, &sub.State, &sub.JobID, &sub.AgeSeconds, &sub.LastError); err != nil {
		return fmt.Errorf("list submissions: %w", err)
	}
	for i := range seen.Submissions {
		seen.Submissions[i].LastError = tellPointer(seen.Submissions[i].LastError)
	}
	return nil
}

// lookAtJobs shows rows by id.
func lookAtJobs(ctx context.Context, tx pgx.Tx, seen *operator.Inspection, ids []string) error {
	var j operator.JobRow
	rows, err := tx.Query(ctx, showJobs, ids)
	seen.Jobs, err = collect(rows, err, &j,
		&j.JobID, &j.State, &j.SumeStatus, instant{&j.CreatedAt}, instant{&j.NextPollAt}, instant{&j.LeasedUntil},
		instant{&j.LastPolledAt}, instant{&j.FinishedAt}, &j.Polls, &j.ConsecutiveErrors, instant{&j.FailingSince}, &j.LostLeases, &j.LastError)
	if err != nil {
		return fmt.Errorf("show jobs: %w", err)
	}
	known := make(map[string]bool, len(seen.Jobs))
	for i := range seen.Jobs {
		known[seen.Jobs[i].JobID] = true
		seen.Jobs[i].LastError = tellPointer(seen.Jobs[i].LastError)
	}
	for _, id := range ids {
		if !known[id] {
			seen.Unknown = append(seen.Unknown, id)
		}
	}
	slices.Sort(seen.Unknown)
	return nil
}

// collect reads all rows of a query into a slice, never nil. Each row is
// scanned into the fields of row, which are given in the query's order.
func collect[T any](rows pgx.Rows, err error, row *T, fields ...any) ([]T, error) {
	if err != nil {
		return nil, err
	}
	all := []T{}
	_, err = pgx.ForEachRow(rows, fields, func() error {
		all = append(all, *row)
		return nil
	})
	return all, err
}
