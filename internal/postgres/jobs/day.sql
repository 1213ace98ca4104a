-- The UTC day: its date, the time since it began, and the reads taken from its
-- quota.
SELECT to_char(now() AT TIME ZONE 'utc', 'YYYY-MM-DD'),
       (extract(epoch FROM (now() AT TIME ZONE 'utc')::time) * 1000000)::bigint,
       {reads_today}
