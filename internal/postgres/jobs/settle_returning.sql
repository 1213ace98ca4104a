    -- kept: the row has what was written, after the table's own triggers. The
    -- lease is cleared; a finished row is not pending, and a pending row not due.
    RETURNING j.job_id, j.state, h.n,
              j.leased_until = '-infinity'
              AND CASE WHEN h.state <> 'pending' THEN j.state <> 'pending'
                       WHEN h.refused AND j.finished_at IS NOT NULL THEN false
                       ELSE j.state <> 'pending' OR j.next_poll_at > now() OR h.delay <= 0 END AS kept
