-- Makes the locked rows pending, and due at their place. The history of a row
-- stays, except the counters that would delay it. A lease that lasts stays too.
-- The mark of an old lease is removed, so that a late settlement under it does not
-- count as written.
UPDATE video_jobs v
   SET state              = 'pending',
       next_poll_at       = {due_at},
       finished_at        = CASE WHEN v.state = 'pending' THEN v.finished_at END,
       consecutive_errors = CASE WHEN v.state = 'pending' THEN v.consecutive_errors ELSE 0 END,
       failing_since      = CASE WHEN v.state = 'pending' THEN v.failing_since END,
       lost_leases        = CASE WHEN v.state = 'pending' THEN v.lost_leases ELSE 0 END,
       lease_id           = CASE WHEN v.state = 'pending' OR NOT {unleased} THEN v.lease_id
                                 ELSE '00000000-0000-0000-0000-000000000000' END
  FROM unnest(@job_ids::text[], @asked::boolean[], @places::bigint[]) AS p (job_id, asked, place)
 WHERE v.job_id = p.job_id
   AND {movable}
