-- The completion event of a row with the columns job_id and state.
pg_notify('video_jobs_finished', json_build_object('job_id', job_id, 'state', state)::text)
