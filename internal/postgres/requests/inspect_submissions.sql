-- Lists the unfinished submissions, the oldest first. Never the request.
SELECT s.idempotency_key, s.state, s.job_id, {elapsed s.created_at} / 1000000, s.last_error
  FROM video_submissions s
 WHERE s.state IN ('sending', 'unrecorded')
 ORDER BY s.created_at, s.idempotency_key
 LIMIT @limit::bigint
