-- Reads a submission, the state of its job's row, and whether the job @job_id has
-- a row.
SELECT s.request::text, s.state, coalesce(s.job_id, ''),
       CASE WHEN j.job_id IS NULL THEN '' ELSE coalesce(j.state, 'unknown') END,
       coalesce(s.http_status, 0), s.unanswered, coalesce(s.last_error, ''),
       {elapsed s.created_at},
       EXISTS (SELECT FROM video_jobs AS v WHERE v.job_id = @job_id::text)
FROM video_submissions AS s
LEFT JOIN video_jobs AS j ON j.job_id = s.job_id
WHERE s.idempotency_key = @key::text
