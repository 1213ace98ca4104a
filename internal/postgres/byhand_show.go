package postgres

import (
	"context"
	"fmt"
	"slices"

	"github.com/jackc/pgx/v5"

	"sumepoller/internal/poller"
)

// failingJobs lists pending rows in back-off, the longest failing first. A
// time without end, which a user may have written, shows as none.
const failingJobs = `
SELECT v.job_id, v.failing_since, v.consecutive_errors, coalesce(v.last_error, '') AS last_error, v.last_polled_at,
       CASE WHEN isfinite(v.next_poll_at) THEN v.next_poll_at END AS next_poll_at
  FROM video_jobs v
 WHERE v.state = 'pending' AND v.failing_since IS NOT NULL
 ORDER BY v.failing_since, v.job_id
 LIMIT $1::bigint`

// countUnfinished counts intents that were sent and have no recorded answer.
const countUnfinished = `
SELECT count(*), count(*) FILTER (WHERE s.created_at <= statement_timestamp() - $1::interval)
  FROM (SELECT created_at FROM video_submissions WHERE state = 'sending' LIMIT $2::bigint) s`

// unfinished lists them, the oldest first; never the request.
const unfinished = `
SELECT s.idempotency_key, extract(epoch FROM greatest(statement_timestamp() - s.created_at, interval '0'))::bigint AS age_seconds,
       s.last_error
  FROM video_submissions s
 WHERE s.state = 'sending'
 ORDER BY s.created_at, s.idempotency_key
 LIMIT $1::bigint`

// showJobs reads rows by id; never final_status, idempotency_key, api_key_ref.
const showJobs = `
SELECT v.job_id, coalesce(v.state, '') AS state, v.sume_status, v.created_at,
       CASE WHEN isfinite(v.next_poll_at) THEN v.next_poll_at END AS next_poll_at,
       CASE WHEN v.leased_until > statement_timestamp() AND isfinite(v.leased_until) THEN v.leased_until END AS leased_until,
       v.last_polled_at, v.finished_at, v.polls, v.consecutive_errors, v.failing_since, v.lost_leases, v.last_error
  FROM video_jobs v
 WHERE v.job_id = ANY ($1::text[])
 ORDER BY v.job_id`

// lookAtTrouble lists what does not get on: failing jobs and unfinished posts.
func lookAtTrouble(ctx context.Context, tx pgx.Tx, seen *poller.Inspection, limit int) error {
	var err error
	if seen.Failing, err = collect[poller.FailingJob](ctx, tx, failingJobs, int64(limit)); err != nil {
		return fmt.Errorf("list failing jobs: %w", err)
	}
	for i := range seen.Failing {
		j := &seen.Failing[i]
		j.LastError = tell(j.LastError)
		utc(&j.FailingSince, j.LastPolledAt, j.NextPollAt)
	}
	err = tx.QueryRow(ctx, countUnfinished, stuckAfter, int64(maxPendingSeen)).
		Scan(&seen.SubmissionsTotal, &seen.SubmissionsStuck)
	if err != nil {
		return fmt.Errorf("count submissions: %w", err)
	}
	if seen.Submissions, err = collect[poller.Unfinished](ctx, tx, unfinished, int64(limit)); err != nil {
		return fmt.Errorf("list submissions: %w", err)
	}
	for i := range seen.Submissions {
		seen.Submissions[i].LastError = tellPointer(seen.Submissions[i].LastError)
	}
	return nil
}

// lookAtJobs shows rows by id.
func lookAtJobs(ctx context.Context, tx pgx.Tx, seen *poller.Inspection, ids []string) error {
	var err error
	if seen.Jobs, err = collect[poller.JobRow](ctx, tx, showJobs, ids); err != nil {
		return fmt.Errorf("show jobs: %w", err)
	}
	known := make(map[string]bool, len(seen.Jobs))
	for i := range seen.Jobs {
		j := &seen.Jobs[i]
		known[j.JobID] = true
		j.LastError = tellPointer(j.LastError)
		utc(j.CreatedAt, j.NextPollAt, j.LeasedUntil, j.LastPolledAt, j.FinishedAt, j.FailingSince)
	}
	for _, id := range ids {
		if !known[id] {
			seen.Unknown = append(seen.Unknown, id)
		}
	}
	slices.Sort(seen.Unknown)
	return nil
}

// collect reads all rows into structs by their columns' names; never nil.
func collect[T any](ctx context.Context, tx pgx.Tx, query string, args ...any) ([]T, error) {
	rows, err := tx.Query(ctx, query, args...)
	if err != nil {
		return nil, err
	}
	return pgx.AppendRows([]T{}, rows, pgx.RowToStructByName[T])
}
