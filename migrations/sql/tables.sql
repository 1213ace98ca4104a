-- The tables with their first columns. add.sql adds the others.

-- Intents, each stored before its order is sent.
CREATE TABLE IF NOT EXISTS video_submissions (idempotency_key text PRIMARY KEY);

-- The reads of each UTC day, all runs together. Every claim updates today's row.
-- No index mentions reads, so fillfactor leaves room for HOT updates.
CREATE TABLE IF NOT EXISTS read_budget (day date PRIMARY KEY) WITH (fillfactor = 50);

-- The three columns that users have already. A user's table is kept; an index that
-- it lacks is built later, while writers go on.
DO $$
BEGIN
    IF to_regclass('video_jobs') IS NULL THEN
        CREATE TABLE video_jobs (
            job_id       text PRIMARY KEY,
            state        text NOT NULL DEFAULT 'pending',
            next_poll_at timestamptz NOT NULL DEFAULT now() + interval '15 seconds'
        );
        {{due_index}};
        -- A new table needs no trial of writes.
        PERFORM set_config('sumepoller.made', 'true', true);
    END IF;
END
$$;
