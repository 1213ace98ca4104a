-- Counts the pending rows, over the due index.
SELECT (extract(epoch FROM now()) * 1000000)::bigint, c.pending, c.due, {elapsed c.oldest_due}, c.leased, c.failing, c.long_running, {reads_today}
  FROM (SELECT count(*) AS pending,
               count(*) FILTER (WHERE p.due AND NOT p.leased) AS due,
               min(p.next_poll_at) FILTER (WHERE p.due AND NOT p.leased) AS oldest_due,
               count(*) FILTER (WHERE p.leased) AS leased,
               count(*) FILTER (WHERE p.failing_since IS NOT NULL) AS failing,
               count(*) FILTER (WHERE p.created_at <= now() - @long_running::bigint * interval '1 microsecond') AS long_running
          FROM (SELECT next_poll_at, failing_since, created_at, {due} AS due, NOT {unleased} AS leased
                  FROM video_jobs
                 WHERE state = 'pending'
                 LIMIT @max_pending::bigint) p) c
