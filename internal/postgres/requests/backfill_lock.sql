-- Locks the rows to change, in the order of job_id, and no others: a run may have
-- locked a pending row that is due already.
SELECT v.job_id, p.asked, p.place
  FROM unnest(@job_ids::text[], @asked::boolean[]) WITH ORDINALITY AS p (job_id, asked, place)
  JOIN video_jobs v ON v.job_id = p.job_id
 WHERE {movable}
 ORDER BY v.job_id
   FOR NO KEY UPDATE OF v
