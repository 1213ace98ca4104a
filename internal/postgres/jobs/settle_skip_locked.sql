-- settle.sql for the rows that no other program has locked. It locks them in an
-- extra step, which costs one more WAL record per row.
WITH held AS MATERIALIZED (
    SELECT j.ctid AS row_at, h.state, h.delay, h.polled, h.status, h.error, h.not_found, h.final, h.refused, h.n
    FROM {settle_batch}
    JOIN video_jobs AS j ON {settle_held}
    ORDER BY j.job_id
    FOR NO KEY UPDATE OF j SKIP LOCKED
),
written AS (
    UPDATE video_jobs AS j
    SET {settle_values}
    FROM held AS h
    WHERE j.ctid = h.row_at
    {settle_returning}
)
{settle_announced}
