-- Lists the pending rows in back-off that have failed for longest, among the first
-- of the due index.
SELECT v.job_id, {microseconds v.failing_since}, v.consecutive_errors, coalesce(v.last_error, ''),
       {microseconds v.last_polled_at}, {microseconds v.next_poll_at}
  FROM (SELECT p.job_id, p.failing_since, p.consecutive_errors, p.last_error, p.last_polled_at, p.next_poll_at
          FROM (SELECT j.job_id, j.failing_since, j.consecutive_errors, j.last_error, j.last_polled_at, j.next_poll_at
                  FROM video_jobs j
                 WHERE j.state = 'pending'
                 LIMIT @max_pending::bigint) p
         WHERE p.failing_since IS NOT NULL
         ORDER BY p.failing_since, p.job_id
         LIMIT @limit::bigint) v
 ORDER BY v.failing_since, v.job_id
