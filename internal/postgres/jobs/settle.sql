-- Settles a batch, announces the jobs that it finished, and returns for each row
-- that it wrote: the position in the batch, from 1, the state, and whether the
-- row has what was written.
WITH written AS (
    UPDATE video_jobs AS j
    SET {settle_values}
    -- In the order of job_id: every statement locks rows in it.
    FROM (SELECT h.job_id, h.lease_id, h.state, h.delay, h.polled, h.status, h.error, h.not_found, h.final, h.refused, h.n
          FROM {settle_batch}
          ORDER BY h.job_id) AS h
    WHERE {settle_held}
    {settle_returning}
)
{settle_announced}
