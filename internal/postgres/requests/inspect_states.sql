-- Counts rows by state, among the first of the table: no index covers the states
-- of finished rows, and a large table would be read as a whole.
SELECT p.state, count(*)
  FROM (SELECT coalesce(v.state, '') AS state FROM video_jobs v LIMIT @max_rows::bigint) p
 GROUP BY p.state
 ORDER BY count(*) DESC, p.state
 LIMIT @max_states::bigint
