-- Counts the work that is waiting. It only reads: one bounded walk over the due
-- index.
WITH pending AS (
    SELECT next_poll_at, created_at, last_polled_at, failing_since,
           {due} AND {unleased} AS claimable
    FROM video_jobs
    WHERE state = 'pending'
    ORDER BY next_poll_at
    LIMIT (SELECT 100000)
),
counted AS (
    SELECT count(*) AS pending,
           count(*) FILTER (WHERE claimable) AS due,
           min(next_poll_at) FILTER (WHERE claimable) AS oldest_due,
           count(*) FILTER (WHERE failing_since < now() - interval '30 minutes') AS failing,
           -- Adopted rows have no created_at.
           min(coalesce(created_at, last_polled_at)) AS oldest_pending
    FROM pending
)
SELECT c.pending, c.due, c.failing,
       {elapsed c.oldest_due},
       {elapsed c.oldest_pending},
       (SELECT count(*)
        FROM (SELECT 1
              FROM video_submissions
              WHERE state IN ('sending', 'unrecorded') AND {stuck}
              LIMIT 100000) AS s),
       {reads_today}
FROM counted AS c
