-- When the row p is due by its place in the backfill: the first hundred at once.
-- The clock is read after the locks are taken, so that a concurrent identical
-- request that waited for them is later and moves nothing.
statement_timestamp() + greatest(p.place - 100, 0) * @pace::bigint * interval '1 microsecond'
