CREATE INDEX video_jobs_due_idx ON video_jobs (next_poll_at) WHERE state = 'pending'
