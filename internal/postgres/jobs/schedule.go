package jobs

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"sumepoller/internal/poller"
	"sumepoller/internal/postgres"
)

// nextDueSQL returns the microseconds until the earliest pending row can be
// claimed, or NULL where there is none. $3 are rows that the table refuses to
// change: no claim asks for them.
const nextDueSQL = `
-- The first row in the due index that nobody has leased.
WITH free AS MATERIALIZED (
    SELECT next_poll_at AS at
    FROM video_jobs
    WHERE state = 'pending'
      AND job_id <> ALL ($3::text[])
      AND coalesce(leased_until < now()
                   OR leased_until > now() + greatest(interval '15 minutes', $2::bigint * interval '1 microsecond'), false)
    ORDER BY next_poll_at
    LIMIT (SELECT 1)
),
-- Where that one is not due yet: the rows before it, which are all leased. Each
-- can be had at its lease's end; rows behind it cannot be due before it. The
-- caller's own do not count. Walked in order, so that the planner takes the index.
ahead AS (
    SELECT next_poll_at, leased_until, lease_id
    FROM video_jobs
    WHERE state = 'pending'
      AND job_id <> ALL ($3::text[])
      AND next_poll_at <= coalesce((SELECT at FROM free), 'infinity')
      AND coalesce((SELECT at FROM free), 'infinity') > now()
    ORDER BY next_poll_at
    LIMIT (SELECT 100000)
),
leased AS (
    SELECT min(greatest(next_poll_at, leased_until)) AS at
    FROM ahead
    WHERE leased_until >= now()
      AND leased_until <= now() + greatest(interval '15 minutes', $2::bigint * interval '1 microsecond')
      AND lease_id <> ALL ($1::text[]::uuid[])
)
-- Kept within a century each way: an infinite time cannot be subtracted.
SELECT (extract(epoch FROM least(greatest(least(free.at, leased.at), now() - interval '100 years'),
                                 now() + interval '100 years') - now()) * 1000000)::bigint
FROM leased
LEFT JOIN free ON true
WHERE least(free.at, leased.at) IS NOT NULL`

// NextDue implements poller.Outlook.
func (s *Store) NextDue(ctx context.Context, own []poller.LeaseID) (in time.Duration, ok bool, err error) {
	leases := make([]string, len(own))
	for i, id := range own {
		leases[i] = uuid(id)
	}
	longest, _ := s.claim.lease()
	err = postgres.Retry(ctx, func() error {
		rows, err := s.pool.Query(ctx, nextDueSQL, leases, micros(longest), s.claim.leftOut())
		if err != nil {
			return err
		}
		found, err := pgx.CollectRows(rows, pgx.RowTo[int64])
		if ok = len(found) > 0; ok {
			in = duration(found[0])
		}
		return err
	})
	if err != nil {
		return 0, false, fmt.Errorf("look when the next job is due: %w", err)
	}
	return in, ok, nil
}

// todaySQL returns where the UTC day stands. The day has no row before its
// first claim.
const todaySQL = `
SELECT to_char(now() AT TIME ZONE 'utc', 'YYYY-MM-DD'),
       (extract(epoch FROM (now() AT TIME ZONE 'utc')::time) * 1000000)::bigint,
       coalesce((SELECT reads FROM read_budget WHERE day = (now() AT TIME ZONE 'utc')::date), 0)`

// Today implements poller.Outlook.
func (s *Store) Today(ctx context.Context) (poller.Day, error) {
	var day poller.Day
	err := postgres.Retry(ctx, func() error {
		var elapsed int64
		err := s.pool.QueryRow(ctx, todaySQL).Scan(&day.Date, &elapsed, &day.Reads)
		day.Elapsed = duration(elapsed)
		return err
	})
	if err != nil {
		return poller.Day{}, fmt.Errorf("look where the day stands: %w", err)
	}
	return day, nil
}

// backlogSQL counts what waits. It only reads.
const backlogSQL = `
-- One walk over the due index, bounded: the earliest 100,000 pending rows.
WITH pending AS (
    SELECT next_poll_at, created_at, last_polled_at, failing_since,
           -- Due and not leased, as a claim sees it.
           next_poll_at <= now() AND (
               leased_until < now()
               OR leased_until > now() + greatest(interval '15 minutes', $1::bigint * interval '1 microsecond')) AS due
    FROM video_jobs
    WHERE state = 'pending'
    ORDER BY next_poll_at
    LIMIT (SELECT 100000)
),
counted AS (
    SELECT count(*) AS pending,
           count(*) FILTER (WHERE due) AS due,
           min(next_poll_at) FILTER (WHERE due) AS oldest_due,
           count(*) FILTER (WHERE failing_since < now() - interval '30 minutes') AS failing,
           -- Adopted rows have no created_at.
           min(coalesce(created_at, last_polled_at)) AS oldest_pending
    FROM pending
)
SELECT c.pending, c.due, c.failing,
       -- Zero where there is none; greatest and least pass NULL over. A due time
       -- of -infinity cannot be subtracted.
       CASE WHEN c.oldest_due IS NULL THEN 0
            ELSE (extract(epoch FROM now() - greatest(c.oldest_due, now() - interval '100 years')) * 1000000)::bigint END,
       CASE WHEN c.oldest_pending IS NULL THEN 0
            ELSE (extract(epoch FROM now() - least(greatest(c.oldest_pending, now() - interval '100 years'), now())) * 1000000)::bigint END,
       (SELECT count(*)
        FROM (SELECT 1
              FROM video_submissions
              WHERE state IN ('sending', 'unrecorded')
                AND (state = 'unrecorded' OR created_at < now() - interval '10 minutes')
              LIMIT 100000) AS stuck),
       coalesce((SELECT reads FROM read_budget WHERE day = (now() AT TIME ZONE 'utc')::date), 0)
FROM counted AS c`

// Backlog implements poller.Outlook. It needs no right but to SELECT.
func (s *Store) Backlog(ctx context.Context) (poller.Backlog, error) {
	var b poller.Backlog
	longest, _ := s.claim.lease()
	err := postgres.Retry(ctx, func() error {
		var due, pending int64
		err := s.pool.QueryRow(ctx, backlogSQL, micros(longest)).
			Scan(&b.Pending, &b.Due, &b.Failing, &due, &pending, &b.StuckSubmissions, &b.ReadsToday)
		b.OldestDue, b.OldestPending = duration(due), duration(pending)
		return err
	})
	if err != nil {
		return poller.Backlog{}, fmt.Errorf("count what waits: %w", err)
	}
	return b, nil
}
