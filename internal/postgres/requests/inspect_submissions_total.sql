-- Counts the unfinished submissions, and those of them that are stuck.
SELECT count(*), count(*) FILTER (WHERE {stuck})
  FROM (SELECT created_at, state FROM video_submissions WHERE state IN ('sending', 'unrecorded') LIMIT @max_pending::bigint) s
