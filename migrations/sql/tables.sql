-- The tables, each with the columns that it begins with. add.sql adds the rest.

-- Intents of paid posts, written before the post.
CREATE TABLE IF NOT EXISTS video_submissions (idempotency_key text PRIMARY KEY);

-- Reads taken from each UTC day's quota, over all runs. The row of today is
-- updated with every claim and no index mentions reads: room for HOT.
CREATE TABLE IF NOT EXISTS read_budget (day date PRIMARY KEY) WITH (fillfactor = 50);

-- The three columns that users have already. Where they do, their table stays
-- and its missing index is built later, without stopping its writers.
DO $$
BEGIN
    IF to_regclass('video_jobs') IS NULL THEN
        CREATE TABLE video_jobs (
            job_id       text PRIMARY KEY,
            state        text NOT NULL DEFAULT 'pending',
            next_poll_at timestamptz NOT NULL DEFAULT now() + interval '15 seconds'
        );
        {{due_index}};
        -- There is nothing to try on a table of our own making.
        PERFORM set_config('sumepoller.made', 'true', true);
    END IF;
END
$$;
