-- Writes the id of the bought job before its row is inserted: if video_jobs
-- refuses the row, the id is still known.
UPDATE video_submissions
SET state = 'sending', job_id = @job_id::text, updated_at = now()
WHERE idempotency_key = @key::text AND job_id IS NULL
