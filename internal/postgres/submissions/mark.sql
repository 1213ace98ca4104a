-- Writes the state of a submission. Once its job is known it does not change.
UPDATE video_submissions
SET state = @state::text, http_status = nullif(@http_status::integer, 0), unanswered = @unanswered::boolean,
    last_error = nullif(@last_error::text, ''), updated_at = now()
WHERE idempotency_key = @key::text AND state IN ('sending', 'rejected') AND job_id IS NULL
