-- Shows rows by id. Never final_status or idempotency_key.
SELECT v.job_id, coalesce(v.state, ''), v.sume_status, {microseconds v.created_at}, {microseconds v.next_poll_at},
       CASE WHEN NOT {unleased} THEN {microseconds v.leased_until} END,
       {microseconds v.last_polled_at}, {microseconds v.finished_at}, v.polls, v.consecutive_errors,
       {microseconds v.failing_since}, v.lost_leases, v.last_error
  FROM video_jobs v
 WHERE v.job_id = ANY (@job_ids::text[])
 ORDER BY v.job_id
