-- Leases due rows and takes their reads from the daily quota. Returns one row
-- per job, or one without a job. Where a row was not updated it also returns the
-- ids of all due rows.
{claim_due},
-- Writes the lease, in columns that no index covers.
claimed AS (
    UPDATE video_jobs AS j
    SET lease_id = @lease::text::uuid,
        -- An earlier lease that was never cleared is lost. Each lost lease makes
        -- the next one four times as long, up to the longest.
        lost_leases = j.lost_leases + (NOT d.paid AND j.leased_until > '-infinity')::integer,
        leased_until = now() + interval '1 microsecond' * least(@longest_lease::bigint,
            @lease_for::bigint * power(4, least(10, j.lost_leases + (NOT d.paid AND j.leased_until > '-infinity')::integer)))
    FROM unnest(ARRAY(SELECT row_at FROM due), ARRAY(SELECT paid FROM due), ARRAY(SELECT charged FROM due)) AS d (row_at, paid, charged)
    WHERE j.ctid = d.row_at
    RETURNING j.job_id, j.next_poll_at, d.paid, d.charged, j.sume_status, j.consecutive_errors,
              j.failing_since, j.not_found_answers, j.lost_leases, j.polls, j.created_at,
              -- Whether the row has the lease after the table's own triggers.
              j.lease_id = @lease::text::uuid AND j.leased_until > now() AND coalesce(j.state, '') = 'pending' AS kept
),
-- Takes the reads before they are made. The day's row is locked since before
-- this statement's snapshot.
charged AS (
    UPDATE read_budget AS b
    SET reads = b.reads + c.fresh
    FROM (SELECT count(*) AS fresh FROM claimed WHERE kept AND NOT paid) AS c
    WHERE @pace_line::bigint >= 0 AND c.fresh > 0 AND b.day = {today}
)
SELECT to_char(now() AT TIME ZONE 'utc', 'YYYY-MM-DD'),
       (extract(epoch FROM (now() AT TIME ZONE 'utc')::time) * 1000000)::bigint,
       {reads_today}, -- before this claim
       coalesce(c.job_id, ''), c.job_id IS NOT NULL AND c.kept, coalesce(c.paid, false), coalesce(c.charged, ''),
       -- The due time, for the bound; NULL where it is more than a century ago.
       CASE WHEN c.next_poll_at > now() - interval '100 years' THEN (extract(epoch FROM c.next_poll_at) * 1000000)::bigint END,
       {elapsed c.next_poll_at},
       c.sume_status IS NOT NULL, coalesce(c.consecutive_errors, 0),
       {elapsed c.failing_since},
       coalesce(c.not_found_answers, 0), coalesce(c.lost_leases, 0), coalesce(c.polls, 0),
       {elapsed c.created_at}
FROM (SELECT 1) AS one (n)
LEFT JOIN claimed AS c ON true
UNION ALL
SELECT '', 0, 0, d.job_id, false, false, '', NULL, 0, false, 0, 0, 0, 0, 0, 0
FROM due AS d
WHERE (SELECT count(*) FROM claimed) < (SELECT count(*) FROM due)
