-- Lists the rows that a backfill selects, in the order of their places: the id,
-- the state, whether the row exists, whether it was asked for by id, and whether
-- the backfill would change it.
--
-- Rows that need no change have a place too, so that repeating the request gives
-- each row the same place. Rows without created_at are older than that column.
WITH asked AS MATERIALIZED (
    SELECT a.job_id FROM unnest(@job_ids::text[]) AS a (job_id)
), picked AS (
    -- By id, whether the row exists or not.
    SELECT a.job_id, v.job_id IS NOT NULL AS known, true AS asked, v.state, v.next_poll_at,
           CASE WHEN v.job_id IS NULL THEN now() ELSE v.created_at END AS created_at
      FROM asked a
      LEFT JOIN video_jobs v ON v.job_id = a.job_id
    UNION ALL
    -- Finished, in one of the states.
    SELECT v.job_id, true, false, v.state, v.next_poll_at, v.created_at
      FROM video_jobs v
     WHERE cardinality(@states::text[]) > 0 AND v.state = ANY (@states::text[])
       AND {created_within}
       AND NOT EXISTS (SELECT FROM asked a WHERE a.job_id = v.job_id)
    UNION ALL
    -- Pending and in back-off.
    SELECT v.job_id, true, false, v.state, v.next_poll_at, v.created_at
      FROM video_jobs v
     WHERE @overdue::boolean AND v.state = 'pending' AND v.failing_since IS NOT NULL
       AND {created_within}
       AND NOT EXISTS (SELECT FROM asked a WHERE a.job_id = v.job_id)
), placed AS (
    SELECT p.job_id, p.known, p.asked, p.state, p.next_poll_at,
           row_number() OVER (ORDER BY p.created_at NULLS FIRST, p.job_id) AS place
      FROM picked p
)
SELECT p.job_id, coalesce(p.state, ''), p.known, p.asked,
       p.known AND (p.state IS DISTINCT FROM 'pending' OR coalesce(p.next_poll_at, 'infinity') > {due_at}) AS changes
  FROM placed p
 WHERE @limit::bigint = 0 OR p.place <= @limit::bigint
 ORDER BY p.place
 LIMIT @max_rows::bigint
