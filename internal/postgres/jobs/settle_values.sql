        -- Ends the lease and keeps its id, by which a repeated settlement finds
        -- the row.
        leased_until = '-infinity',
        lost_leases  = 0,
        state        = h.state,
        -- Of a finished row too, in case a trigger turns it back into pending.
        next_poll_at = now() + h.delay * interval '1 microsecond',
        finished_at  = CASE WHEN h.state = 'pending' THEN NULL ELSE now() END,
        final_status = CASE WHEN h.state = 'pending' THEN j.final_status ELSE nullif(h.final, '')::jsonb END,
        polls          = j.polls + (h.polled AND j.leased_until > '-infinity')::integer,
        last_polled_at = CASE WHEN h.polled THEN now() ELSE j.last_polled_at END,
        -- A good answer ends a series of errors; last_error stays.
        consecutive_errors = CASE WHEN h.error = '' THEN 0 ELSE j.consecutive_errors + 1 END,
        failing_since      = CASE WHEN h.error = '' THEN NULL ELSE coalesce(j.failing_since, now()) END,
        not_found_answers  = h.not_found,
        last_error         = coalesce(nullif(h.error, ''), j.last_error),
        -- '' after a good answer without a status, so that the row counts as
        -- answered.
        sume_status = coalesce(nullif(h.status, ''), j.sume_status, CASE WHEN h.error = '' THEN '' END)
