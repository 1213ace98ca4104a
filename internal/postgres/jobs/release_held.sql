-- The rows still leased, found and locked as in a settle. @states are the states
-- that they keep.
WITH held AS MATERIALIZED (
    SELECT j.ctid AS row_at, b.n, b.unread
    FROM unnest((SELECT @ids::text[]), (SELECT @leases::text[]), (SELECT @states::text[]), (SELECT @unread::boolean[]))
         WITH ORDINALITY AS b (job_id, lease_id, state, unread, n)
    JOIN video_jobs AS j ON j.job_id = b.job_id AND j.lease_id = b.lease_id::uuid
    WHERE coalesce(j.state, '') = b.state
      AND j.leased_until > '-infinity'
      AND (SELECT set_config('lock_timeout', @lock_timeout::text, true)) IS NOT NULL
    ORDER BY j.job_id
    FOR NO KEY UPDATE OF j
