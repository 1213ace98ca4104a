-- The time since {column} in microseconds: 0 for NULL and for a later time, and
-- at most a century, since no interval reaches back to -infinity.
CASE WHEN {column} < now() THEN (extract(epoch FROM now() - greatest({column}, now() - interval '100 years')) * 1000000)::bigint ELSE 0 END
