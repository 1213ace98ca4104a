-- Locks the rows to stop, in the order of job_id. coalesce makes the planner find
-- each by its id and not through the due index.
SELECT v.job_id
  FROM video_jobs v
 WHERE v.job_id = ANY (@job_ids::text[]) AND coalesce(v.state, '') = 'pending'
 ORDER BY v.job_id
   FOR NO KEY UPDATE
