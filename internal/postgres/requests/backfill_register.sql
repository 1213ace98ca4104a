-- Registers ids that are not in the table, in the order of job_id, so that
-- concurrent requests do not deadlock.
INSERT INTO video_jobs (job_id, state, next_poll_at)
SELECT p.job_id, 'pending', {due_at}
  FROM unnest(@job_ids::text[], @places::bigint[]) AS p (job_id, place)
 ORDER BY p.job_id
ON CONFLICT (job_id) DO NOTHING
