-- The pending row j is leased, as the row h of the batch needs it. A lease that
-- a settlement cleared counts for the error that follows that settlement: a
-- trigger turned the finish back into pending, or made the row due.
coalesce(j.state, '') = 'pending'
      AND (j.leased_until > '-infinity' OR h.refused AND (j.finished_at IS NOT NULL OR j.next_poll_at <= now()))
