-- The UTC day, whose reads are counted together.
(now() AT TIME ZONE 'utc')::date
