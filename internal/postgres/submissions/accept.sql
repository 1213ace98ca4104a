-- Inserts a job's row and, if the row is there, accepts its submission, in one
-- transaction. A job that is in the table already, from a backfill or a concurrent
-- request, is left as it is, and its row's lock is not waited for: nothing is
-- inserted that the table could refuse. The job of an accepted submission gets its
-- row too: it was paid.
WITH inserted AS (
    INSERT INTO video_jobs (job_id, state, next_poll_at, created_at, idempotency_key)
    SELECT @job_id::text, 'pending', now() + interval '15 seconds', now(), @key::text
    WHERE NOT EXISTS (SELECT FROM video_jobs AS v WHERE v.job_id = @job_id::text)
    ON CONFLICT (job_id) DO NOTHING
    RETURNING job_id
)
UPDATE video_submissions
SET state = 'accepted', job_id = @job_id::text, http_status = NULL, unanswered = false, last_error = NULL, updated_at = now()
WHERE idempotency_key = @key::text
  AND state <> 'accepted'
  AND coalesce(job_id, @job_id::text) = @job_id::text
  AND (EXISTS (SELECT FROM inserted AS i WHERE i.job_id = @job_id::text)
       OR EXISTS (SELECT FROM video_jobs AS v WHERE v.job_id = @job_id::text))
