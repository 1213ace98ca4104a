-- Ends the lease and counts nothing. An unread row keeps its place in the due
-- index. A row that was read goes behind all others that are due, so that it
-- does not stay at the head. Earlier lost leases stay counted.
freed AS (
    UPDATE video_jobs AS j
    SET leased_until = '-infinity',
        next_poll_at = CASE WHEN h.unread THEN j.next_poll_at ELSE now() END
    FROM held AS h
    WHERE j.ctid = h.row_at
    RETURNING h.n, h.unread, j.leased_until = '-infinity' AS kept
),
-- Counts only rows that this statement released, so that repeating it gives
-- nothing back. The count is in FROM: if another run has changed the day's row
-- meanwhile, PostgreSQL evaluates SET again for the new row, but not FROM.
refunded AS (
    UPDATE read_budget AS b
    SET reads = greatest(0, b.reads - f.unread)
    FROM (SELECT count(*) AS unread FROM freed WHERE unread AND kept AND @counted::boolean) AS f
    WHERE f.unread > 0 AND b.day = nullif(@day::text, '')::date
)
SELECT n, 'pending', coalesce(kept, false), NULL::text FROM freed
