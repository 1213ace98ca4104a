-- The schema of the Sume job poller, for psql. Safe to run again. Where it ends
-- with "canceling statement due to lock timeout", another program held locks on
-- video_jobs: nothing was changed, run it again.
--
-- The functions' roles need, beside CONNECT on the database and USAGE on the schema:
--   GRANT SELECT, INSERT, UPDATE ON video_jobs, read_budget TO <poller>;
--   GRANT SELECT ON video_submissions TO <poller>;
--   GRANT SELECT, INSERT, UPDATE ON video_submissions TO <submitter>;
--   GRANT SELECT, INSERT ON video_jobs TO <submitter>;
--
-- A large video_jobs that lacks the index on next_poll_at: build that first, so
-- that no writer waits:
--   CREATE INDEX CONCURRENTLY video_jobs_due_idx ON video_jobs (next_poll_at) WHERE state = 'pending';
BEGIN;
SET LOCAL lock_timeout = '2500ms';
SET LOCAL client_min_messages = 'warning';

-- Looks whether the schema can be made here and a video_jobs that exists can
-- be adopted. Changes nothing; raises one line that names the cure.
DO $$
DECLARE
    me     text := quote_ident(current_user);
    jobs   record;
    fault  text;
BEGIN
    IF current_schema() IS NULL THEN
        RAISE EXCEPTION 'no schema of the search_path exists: CREATE SCHEMA, or ALTER ROLE % SET search_path', me;
    END IF;
    IF NOT has_schema_privilege(current_schema(), 'CREATE') THEN
        RAISE EXCEPTION 'role % may not create tables in schema %: GRANT USAGE, CREATE ON SCHEMA % TO %',
            me, current_schema(), quote_ident(current_schema()), me;
    END IF;

    -- The two tables beside it are never a user's.
    SELECT string_agg(format('%s.%s', w.tab, w.col), ', ') INTO fault
      FROM (VALUES ('video_submissions', 'idempotency_key', 'text'), ('video_submissions', 'request', 'json'), ('video_submissions', 'job_id', 'text'),
                   ('video_submissions', 'state', 'text'), ('video_submissions', 'last_error', 'text'),
                   ('video_submissions', 'created_at', 'timestamp with time zone'), ('video_submissions', 'updated_at', 'timestamp with time zone'),
                   ('read_budget', 'day', 'date'), ('read_budget', 'reads', 'integer')) AS w (tab, col, type)
      JOIN pg_class c ON c.oid = to_regclass(w.tab)
      LEFT JOIN pg_attribute a ON a.attrelid = c.oid AND a.attname = w.col AND NOT a.attisdropped
     WHERE a.attnum IS NULL OR format_type(a.atttypid, NULL) <> w.type;
    IF fault IS NOT NULL THEN
        RAISE EXCEPTION 'a table of the same name is there for something else (%): rename it', fault;
    END IF;

    SELECT c.oid, c.relkind, c.relowner, quote_ident(pg_get_userbyid(c.relowner)) AS owner INTO jobs
      FROM pg_class c WHERE c.oid = to_regclass('video_jobs');
    IF NOT FOUND THEN
        RETURN;
    END IF;
    IF jobs.relkind <> 'r' THEN
        RAISE EXCEPTION 'video_jobs is not an ordinary table (a view, a partitioned or a foreign one), so it cannot be adopted: rename it';
    END IF;

    -- The three columns. Domains, enums and short varchars would refuse states
    -- that Sume or this program gives.
    SELECT string_agg(format('%s is %s, not %s', w.name, coalesce(format_type(a.atttypid, a.atttypmod), 'missing'), w.type), '; ' ORDER BY w.n) INTO fault
      FROM (VALUES (1, 'job_id', 'text'), (2, 'state', 'text'), (3, 'next_poll_at', 'timestamp with time zone')) AS w (n, name, type)
      LEFT JOIN pg_attribute a ON a.attrelid = jobs.oid AND a.attname = w.name AND NOT a.attisdropped
     WHERE a.attnum IS NULL
        OR NOT (format_type(a.atttypid, NULL) = w.type AND (a.atttypmod = -1 OR w.n = 3)
             OR w.type = 'text' AND a.atttypid = 'varchar'::regtype AND (a.atttypmod = -1 OR a.atttypmod >= 68 OR w.n = 1))
        OR a.attgenerated <> '';
    IF fault IS NOT NULL THEN
        RAISE EXCEPTION 'video_jobs cannot be adopted: %: ALTER TABLE video_jobs ALTER COLUMN ... TYPE ..., or rename the table', fault;
    END IF;

    -- One row per job, and no row without an id.
    IF NOT (SELECT a.attnotnull FROM pg_attribute a WHERE a.attrelid = jobs.oid AND a.attname = 'job_id') THEN
        RAISE EXCEPTION 'video_jobs cannot be adopted: job_id may be NULL: ALTER TABLE video_jobs ALTER COLUMN job_id SET NOT NULL';
    END IF;
    IF NOT EXISTS (
        SELECT FROM pg_index i
          JOIN pg_attribute a ON a.attrelid = i.indrelid AND a.attname = 'job_id'
         WHERE i.indrelid = jobs.oid AND i.indisunique AND i.indisvalid AND i.indimmediate
           AND i.indpred IS NULL AND i.indnkeyatts = 1 AND i.indkey[0] = a.attnum
    ) THEN
        RAISE EXCEPTION 'video_jobs cannot be adopted: job_id is not unique: CREATE UNIQUE INDEX CONCURRENTLY ON video_jobs (job_id)';
    END IF;

    -- The product's columns that exist already must be as the migration makes them.
    SELECT string_agg(format('%s is %s%s, not %s%s', w.name, format_type(a.atttypid, a.atttypmod),
                             CASE WHEN a.attnotnull THEN ' NOT NULL' ELSE '' END, w.type,
                             CASE WHEN w.filled THEN ' NOT NULL with a default' ELSE '' END), '; ' ORDER BY w.n) INTO fault
      FROM (VALUES (1, 'leased_until', 'timestamp with time zone', true), (2, 'lease_id', 'uuid', true),
                   (3, 'lost_leases', 'integer', true), (4, 'polls', 'integer', true), (5, 'consecutive_errors', 'integer', true),
                   (6, 'failing_since', 'timestamp with time zone', false), (7, 'last_error', 'text', false),
                   (8, 'last_polled_at', 'timestamp with time zone', false), (9, 'finished_at', 'timestamp with time zone', false),
                   (10, 'created_at', 'timestamp with time zone', NULL), (11, 'sume_status', 'text', false),
                   (12, 'final_status', 'jsonb', false), (13, 'idempotency_key', 'text', false), (14, 'api_key_ref', 'text', false)
           ) AS w (n, name, type, filled)
      JOIN pg_attribute a ON a.attrelid = jobs.oid AND a.attname = w.name AND NOT a.attisdropped
     WHERE format_type(a.atttypid, NULL) <> w.type
        OR a.attnotnull <> w.filled
        OR w.filled AND NOT a.atthasdef
        OR a.attgenerated <> '' OR a.attidentity <> '';
    IF fault IS NOT NULL THEN
        RAISE EXCEPTION 'video_jobs cannot be adopted: it has columns of the same names for other things: %: ALTER TABLE video_jobs RENAME COLUMN ...', fault;
    END IF;

    IF NOT pg_has_role(jobs.relowner, 'USAGE')
       AND NOT pg_has_role(jobs.relowner, CASE WHEN current_setting('server_version_num')::integer >= 160000 THEN 'SET' ELSE 'MEMBER' END)
    THEN
        -- RDS takes no password of whoever inherits a role with rds_iam.
        IF pg_has_role(jobs.relowner, (SELECT r.oid FROM pg_roles r WHERE r.rolname = 'rds_iam'), 'MEMBER') THEN
            RAISE EXCEPTION 'video_jobs belongs to role %, which logs in with IAM and which % may not act for: GRANT % TO % WITH INHERIT FALSE (from PostgreSQL 16 on; inherited, it would cost % its password), or run the SQL of make schema as %',
                jobs.owner, me, jobs.owner, me, me, jobs.owner;
        END IF;
        RAISE EXCEPTION 'video_jobs belongs to role %, which % may not act for: GRANT % TO %', jobs.owner, me, jobs.owner, me;
    END IF;
END
$$;

-- Intents of paid posts, written before the post. The request is json, not
-- jsonb, so that a second post sends the same bytes.
CREATE TABLE IF NOT EXISTS video_submissions (
    idempotency_key text PRIMARY KEY,
    request         json NOT NULL,
    job_id          text,
    state           text NOT NULL DEFAULT 'sending',
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

-- Our columns, after theirs. Last in this transaction, since from here to the
-- commit nobody else gets at the table: constant defaults rewrite nothing.
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

-- The due index, where the table has none; what a failed build left goes first.
DO $$
DECLARE
    index record;
    found_one boolean := false;
    before text := current_setting('role');
    owner name := (SELECT pg_get_userbyid(relowner) FROM pg_class WHERE oid = 'video_jobs'::regclass);
BEGIN
    IF NOT pg_has_role(owner, 'USAGE') THEN
        EXECUTE format('SET LOCAL ROLE %I', owner);
    END IF;
    FOR index IN
        SELECT format('%I.%I', n.nspname, c.relname) AS name, i.indisvalid AS valid
          FROM pg_index i
          JOIN pg_class c ON c.oid = i.indexrelid
          JOIN pg_namespace n ON n.oid = c.relnamespace
          JOIN pg_am m ON m.oid = c.relam AND m.amname = 'btree'
          JOIN pg_attribute a ON a.attrelid = i.indrelid AND a.attname = 'next_poll_at'
         WHERE i.indrelid = 'video_jobs'::regclass
           AND i.indnkeyatts = 1 AND i.indkey[0] = a.attnum
           AND pg_get_expr(i.indpred, i.indrelid) IN ('(state = ''pending''::text)', '((state)::text = ''pending''::text)')
           AND NOT EXISTS (SELECT FROM pg_stat_progress_create_index p WHERE p.index_relid = i.indexrelid)
         ORDER BY i.indexrelid
    LOOP
        IF index.valid THEN
            found_one := true;
        ELSE
            EXECUTE 'DROP INDEX ' || index.name;
        END IF;
    END LOOP;
    IF NOT found_one THEN
        CREATE INDEX  video_jobs_due_idx ON video_jobs (next_poll_at) WHERE state = 'pending';
    END IF;
    EXECUTE format('SET LOCAL ROLE %s', CASE before WHEN 'none' THEN 'NONE' ELSE quote_ident(before) END);
END
$$;

-- The version, in the form that the automatic migration reads and writes.
CREATE TABLE IF NOT EXISTS video_jobs_schema (
    id         integer PRIMARY KEY GENERATED BY DEFAULT AS IDENTITY,
    version_id bigint NOT NULL,
    is_applied boolean NOT NULL,
    tstamp     timestamp NOT NULL DEFAULT now()
);
INSERT INTO video_jobs_schema (version_id, is_applied)
SELECT v, true FROM generate_series(0, 2) AS v
 WHERE v NOT IN (SELECT version_id FROM video_jobs_schema) ORDER BY v;
COMMIT;
