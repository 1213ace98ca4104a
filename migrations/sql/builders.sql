-- The sessions that build an index of video_jobs concurrently. Such a session
-- holds this lock from beginning to end. Both views show its pid to every role.
SELECT FROM pg_locks l
  JOIN pg_stat_progress_create_index p ON p.pid = l.pid
 WHERE l.locktype = 'relation' AND l.relation = to_regclass('video_jobs') AND l.granted
   AND l.database = (SELECT d.oid FROM pg_database d WHERE d.datname = current_database())
   AND l.mode = 'ShareUpdateExclusiveLock' AND l.pid <> pg_backend_pid()
