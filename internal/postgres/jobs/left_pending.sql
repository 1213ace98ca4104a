-- Whether a row with this lease is not pending: a trigger changed the state when
-- the row was leased.
SELECT coalesce(state, '') <> 'pending' FROM video_jobs WHERE job_id = @job_id::text AND lease_id = @lease::text::uuid
