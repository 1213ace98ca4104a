-- Lists the rows that are due for longest, leased ones too, in the order of the
-- due index.
SELECT v.job_id, {elapsed v.next_poll_at} / 1000000, v.lost_leases,
       CASE WHEN NOT {unleased} THEN {microseconds v.leased_until} END,
       {microseconds v.last_polled_at}
  FROM (SELECT job_id, next_poll_at, lost_leases, leased_until, last_polled_at
          FROM video_jobs
         WHERE {due}
         ORDER BY next_poll_at
         LIMIT (SELECT @limit::bigint)) v
 ORDER BY v.next_poll_at, v.job_id
