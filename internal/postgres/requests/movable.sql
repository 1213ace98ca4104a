-- The row v is one that the backfill changes, as it is now: a finished row that
-- was asked for by id or by its state, or a pending row, asked for or in
-- back-off, that would otherwise be read later.
(
        v.state IS DISTINCT FROM 'pending' AND (p.asked OR v.state = ANY (@states::text[]))
     OR v.state = 'pending' AND (p.asked OR @overdue::boolean AND v.failing_since IS NOT NULL)
        AND coalesce(v.next_poll_at, 'infinity') > {due_at})
