-- Lists the rows that have been pending for longest, among the first of the due
-- index. Times are converted only for the rows that are shown, here and in
-- inspect_failing.sql: the conversion costs more than finding them.
SELECT v.job_id, {microseconds v.created_at}, {elapsed v.created_at} / 1000000, v.polls, v.sume_status,
       {microseconds v.next_poll_at}
  FROM (SELECT p.job_id, p.created_at, p.polls, p.sume_status, p.next_poll_at
          FROM (SELECT j.job_id, j.created_at, j.polls, j.sume_status, j.next_poll_at
                  FROM video_jobs j
                 WHERE j.state = 'pending'
                 LIMIT @max_pending::bigint) p
         WHERE p.created_at <= now() - @long_running::bigint * interval '1 microsecond'
         ORDER BY p.created_at, p.job_id
         LIMIT @limit::bigint) v
 ORDER BY v.created_at, v.job_id
