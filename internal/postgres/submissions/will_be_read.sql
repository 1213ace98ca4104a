-- Whether a run will read the job. A trigger can insert a row that is not pending,
-- or is never due.
SELECT EXISTS (SELECT FROM video_jobs AS v
               WHERE v.job_id = @job_id::text AND v.state = 'pending' AND isfinite(v.next_poll_at))
