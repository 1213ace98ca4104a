-- Finishes the locked rows and announces each, in the transaction that finishes
-- it. The lease is removed, so that a later settlement under it is a lost lease.
WITH ended AS (
    UPDATE video_jobs v
       SET state        = 'stopped',
           finished_at  = statement_timestamp(),
           leased_until = '-infinity',
           lease_id     = '00000000-0000-0000-0000-000000000000'
     WHERE v.job_id = ANY (@job_ids::text[]) AND coalesce(v.state, '') = 'pending'
 RETURNING v.job_id, v.state
), announced AS (
    SELECT {announce}
      FROM ended
)
SELECT count(*) FROM announced
