-- +goose Up

-- Intents of paid posts, written before the post. The request is json, not
-- jsonb, so that a second post sends the same text to the letter.
CREATE TABLE IF NOT EXISTS video_submissions (
    idempotency_key text PRIMARY KEY,
    request         json NOT NULL,
    job_id          text,
    state           text NOT NULL DEFAULT 'sending',
    http_status     integer,                        -- of the API's last answer without a job; NULL: none came
    unanswered      boolean NOT NULL DEFAULT false, -- a post of this key had no answer: it may have bought the job
    last_error      text,
    created_at      timestamptz NOT NULL DEFAULT now(),
    updated_at      timestamptz NOT NULL DEFAULT now()
);

-- Unfinished intents are few among many: inspect and a metric look for them.
CREATE INDEX IF NOT EXISTS video_submissions_sending_idx
    ON video_submissions (created_at) WHERE state = 'sending';

-- Reads taken from each UTC day's allowance, over all runs. The row of today
-- is updated with every claim and no index mentions reads: room for HOT.
CREATE TABLE IF NOT EXISTS read_budget (
    day   date PRIMARY KEY,
    reads integer NOT NULL DEFAULT 0
) WITH (fillfactor = 50);

-- The three columns that users have already. Where they do, their table stays
-- and its missing index is built apart, without stopping its writers.
-- +goose StatementBegin
DO $$
BEGIN
    IF to_regclass('video_jobs') IS NULL THEN
        CREATE TABLE video_jobs (
            job_id       text PRIMARY KEY,
            state        text NOT NULL DEFAULT 'pending',
            next_poll_at timestamptz NOT NULL DEFAULT now() + interval '15 seconds'
        );
        CREATE INDEX video_jobs_due_idx ON video_jobs (next_poll_at) WHERE state = 'pending';
    END IF;
END
$$;
-- +goose StatementEnd

-- Our columns, after theirs. Last in this transaction, since from here to the
-- commit nobody else gets at the table: constant defaults rewrite nothing.
-- +goose StatementBegin
DO $$
DECLARE
    before text := current_setting('role');
    jobs   record;
    option record;
BEGIN
    SELECT pg_get_userbyid(c.relowner) AS owner, c.reloptions AS options INTO jobs
      FROM pg_class c WHERE c.oid = 'video_jobs'::regclass;
    -- A table of another role's is altered as that role; whether that is
    -- allowed was looked at before.
    IF NOT pg_has_role(jobs.owner, 'USAGE') THEN
        EXECUTE format('SET LOCAL ROLE %I', jobs.owner);
    END IF;

    ALTER TABLE video_jobs
        ADD COLUMN IF NOT EXISTS leased_until       timestamptz NOT NULL DEFAULT '-infinity',
        ADD COLUMN IF NOT EXISTS lease_id           uuid        NOT NULL DEFAULT '00000000-0000-0000-0000-000000000000',
        ADD COLUMN IF NOT EXISTS lost_leases        integer     NOT NULL DEFAULT 0,
        ADD COLUMN IF NOT EXISTS polls              integer     NOT NULL DEFAULT 0,
        ADD COLUMN IF NOT EXISTS consecutive_errors integer     NOT NULL DEFAULT 0,
        ADD COLUMN IF NOT EXISTS not_found_answers  integer     NOT NULL DEFAULT 0,
        ADD COLUMN IF NOT EXISTS failing_since      timestamptz,
        ADD COLUMN IF NOT EXISTS last_error         text,
        ADD COLUMN IF NOT EXISTS last_polled_at     timestamptz,
        ADD COLUMN IF NOT EXISTS finished_at        timestamptz,
        ADD COLUMN IF NOT EXISTS created_at         timestamptz,
        ADD COLUMN IF NOT EXISTS sume_status        text,
        ADD COLUMN IF NOT EXISTS final_status       jsonb,
        ADD COLUMN IF NOT EXISTS idempotency_key    text,
        ADD COLUMN IF NOT EXISTS api_key_ref        text;

    -- Defaults where there are none: a row inserted with its id alone is due.
    -- created_at gets its default apart from the column, so that rows which
    -- were there before keep NULL in place of the migration's time.
    FOR option IN
        SELECT d.name, d.value
          FROM (VALUES ('state',        '''pending'''),
                       ('next_poll_at', 'now() + interval ''15 seconds'''),
                       ('created_at',   'now()')) AS d (name, value)
          JOIN pg_attribute a ON a.attrelid = 'video_jobs'::regclass AND a.attname = d.name AND NOT a.atthasdef
    LOOP
        EXECUTE format('ALTER TABLE video_jobs ALTER COLUMN %I SET DEFAULT %s', option.name, option.value);
    END LOOP;

    -- Storage, where the owner set nothing else. Most of each page is left
    -- free: a claim's write stays on its page and moves no index entry, and so
    -- does, for the log's sake, the finished row, which with its answer is
    -- about four times as long as a new one; dead rows are cleaned by the hundred, not by the fifth of the
    -- table, since each claim walks the ones at the head of the due index.
    FOR option IN
        SELECT d.name, d.value
          FROM (VALUES ('fillfactor',                      '20'),
                       ('autovacuum_vacuum_threshold',     '500'),
                       ('autovacuum_vacuum_scale_factor',  '0.01'),
                       ('autovacuum_analyze_threshold',    '500'),
                       ('autovacuum_analyze_scale_factor', '0.05')) AS d (name, value)
         WHERE d.name NOT IN (SELECT o.option_name FROM pg_options_to_table(jobs.options) o)
    LOOP
        EXECUTE format('ALTER TABLE video_jobs SET (%s = %s)', option.name, option.value);
    END LOOP;

    EXECUTE format('SET LOCAL ROLE %s', CASE before WHEN 'none' THEN 'NONE' ELSE quote_ident(before) END);
END
$$;
-- +goose StatementEnd
