-- Counts the ids that are in the table, in any state.
SELECT count(*) FROM video_jobs v WHERE v.job_id = ANY (@job_ids::text[])
