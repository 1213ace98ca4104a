-- The microseconds until the earliest pending row is claimable, or no row where
-- there is none.
WITH free AS MATERIALIZED (
    -- The earliest row without a lease.
    SELECT next_poll_at AS at
    FROM video_jobs
    WHERE state = 'pending'
      AND job_id <> ALL (@excluded::text[])
      AND coalesce({unleased}, false)
    ORDER BY next_poll_at
    LIMIT (SELECT 1)
),
ahead AS (
    -- If that one is not due yet: the rows before it, which are all leased. Each
    -- is claimable when its lease ends.
    SELECT next_poll_at, leased_until, lease_id
    FROM video_jobs
    WHERE state = 'pending'
      AND job_id <> ALL (@excluded::text[])
      AND next_poll_at <= coalesce((SELECT at FROM free), 'infinity')
      AND coalesce((SELECT at FROM free), 'infinity') > now()
    ORDER BY next_poll_at
    LIMIT (SELECT 100000)
),
leased AS (
    -- The caller's own leases do not count.
    SELECT min(greatest(next_poll_at, leased_until)) AS at
    FROM ahead
    WHERE NOT {unleased}
      AND lease_id <> ALL (@own_leases::text[]::uuid[])
)
-- Within a century each way: an infinite time cannot be subtracted.
SELECT (extract(epoch FROM least(greatest(least(free.at, leased.at), now() - interval '100 years'),
                                 now() + interval '100 years') - now()) * 1000000)::bigint
FROM leased
LEFT JOIN free ON true
WHERE least(free.at, leased.at) IS NOT NULL
