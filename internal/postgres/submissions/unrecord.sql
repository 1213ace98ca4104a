-- Writes that a bought job has no row. The id is NULL where the column cannot hold
-- it.
UPDATE video_submissions
SET state = 'unrecorded', job_id = @job_id::text, http_status = NULL, unanswered = false, last_error = @reason::text, updated_at = now()
WHERE idempotency_key = @key::text
  AND coalesce(job_id, @job_id::text, '') = coalesce(@job_id::text, '')
  AND NOT EXISTS (SELECT FROM video_jobs AS v WHERE v.job_id = @job_id::text)
