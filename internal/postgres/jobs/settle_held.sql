j.job_id = h.job_id
      AND j.lease_id = h.lease_id::uuid
      AND {held}
      AND (SELECT set_config('lock_timeout', @lock_timeout::text, true)) IS NOT NULL
