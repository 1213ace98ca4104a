-- One announcement per finished job, in the transaction that finishes it.
SELECT n, coalesce(state, ''), coalesce(kept, false),
       CASE WHEN @announce::boolean AND kept AND state <> 'pending'
            THEN pg_notify('video_jobs_finished', json_build_object('job_id', job_id, 'state', state)::text)::text END
FROM written
