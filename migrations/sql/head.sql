-- The schema of the Sume job poller, for psql. It is safe to run again. If it
-- ends with "canceling statement due to lock timeout", another program held locks
-- on video_jobs and nothing was changed: run it again. A WARNING names a write
-- that the existing video_jobs accepts in part only, and the cure.
--
-- The functions' roles need CONNECT on the database, USAGE on the schema, and:
--   %s
--
-- If a large video_jobs lacks the index on next_poll_at, build it first, so that
-- no writer waits:
--   %s;
BEGIN;
SET LOCAL lock_timeout = '2s';
SET LOCAL client_min_messages = 'warning';
