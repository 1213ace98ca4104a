-- Takes the lock under which today's reads are counted, and inserts the day's
-- row if there is none. The claim that follows in the same transaction has its
-- own snapshot, taken under the lock: no other run's claim can get in between.
INSERT INTO read_budget (day, reads)
SELECT {today}, 0
-- Other runs hold the lock for milliseconds. To wait longer is an error.
WHERE (SELECT set_config('lock_timeout', '3s', true)) IS NOT NULL
-- An existing row is locked and left as it is.
ON CONFLICT (day) DO UPDATE SET reads = excluded.reads WHERE false
