-- Checks that the schema can be made here and that an existing video_jobs can be
-- adopted. Changes nothing. An error is one line that says what to do.
DO $$
DECLARE
    me             text := quote_ident(current_user);
    schema_version integer := 0;
    jobs           record;
    problem        text;
BEGIN
    -- The version before this migration, for the blocks that follow. 0: none.
    IF to_regclass('video_jobs_schema') IS NOT NULL THEN
        EXECUTE 'SELECT coalesce(max(version_id) FILTER (WHERE is_applied), 0) FROM video_jobs_schema' INTO schema_version;
    END IF;
    PERFORM set_config('sumepoller.version', schema_version::text, true), set_config('sumepoller.made', '', true);

    IF current_schema() IS NULL THEN
        RAISE EXCEPTION 'no schema of the search_path exists: CREATE SCHEMA, or ALTER ROLE % SET search_path', me;
    END IF;
    IF NOT has_schema_privilege(current_schema(), 'CREATE') THEN
        RAISE EXCEPTION 'role % may not create tables in schema %: GRANT USAGE, CREATE ON SCHEMA % TO %',
            me, current_schema(), quote_ident(current_schema()), me;
    END IF;

    -- Users have no table of these two names. From version 1 on, a missing column
    -- is one that this migration adds.
    SELECT coalesce(string_agg(format('%s.%s', w.tab, w.col), ', ' ORDER BY w.n) FILTER (WHERE a.attnum IS NOT NULL),
                    string_agg(format('%s.%s', w.tab, w.col), ', ' ORDER BY w.n)) INTO problem
      FROM ({{columns}}) AS w (n, tab, col, type, filled, value)
      JOIN pg_class c ON c.oid = to_regclass(w.tab)
      LEFT JOIN pg_attribute a ON a.attrelid = c.oid AND a.attname = w.col AND NOT a.attisdropped
     WHERE w.tab <> 'video_jobs'
       AND (a.attnum IS NULL AND schema_version = 0 OR format_type(a.atttypid, NULL) <> w.type);
    IF problem IS NOT NULL THEN
        RAISE EXCEPTION 'a table of the same name exists for another purpose (%): rename it', problem;
    END IF;

    SELECT c.oid, c.relkind, c.relowner, quote_ident(pg_get_userbyid(c.relowner)) AS owner INTO jobs
      FROM pg_class c WHERE c.oid = to_regclass('video_jobs');
    IF NOT FOUND THEN
        RETURN;
    END IF;
    IF jobs.relkind <> 'r' THEN
        RAISE EXCEPTION 'video_jobs is not an ordinary table (a view, a partitioned or a foreign one), so it cannot be adopted: rename it';
    END IF;

    -- The three columns. Domains, enums and short varchars would refuse states that
    -- Sume or this program writes.
    SELECT string_agg(format('%s is %s, not %s', w.name, coalesce(format_type(a.atttypid, a.atttypmod), 'missing'), w.type), '; ' ORDER BY w.n) INTO problem
      FROM (VALUES (1, 'job_id', 'text'), (2, 'state', 'text'), (3, 'next_poll_at', 'timestamp with time zone')) AS w (n, name, type)
      LEFT JOIN pg_attribute a ON a.attrelid = jobs.oid AND a.attname = w.name AND NOT a.attisdropped
     WHERE a.attnum IS NULL
        OR NOT (format_type(a.atttypid, NULL) = w.type AND (a.atttypmod = -1 OR w.n = 3)
             OR w.type = 'text' AND a.atttypid = 'varchar'::regtype AND (a.atttypmod = -1 OR a.atttypmod >= 68 OR w.n = 1))
        OR a.attgenerated <> '';
    IF problem IS NOT NULL THEN
        RAISE EXCEPTION 'video_jobs cannot be adopted: %: ALTER TABLE video_jobs ALTER COLUMN ... TYPE ..., or rename the table', problem;
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

    -- The product's columns that exist already must be as the migration would make them.
    SELECT string_agg(format('%s is %s%s, not %s%s', w.name, format_type(a.atttypid, a.atttypmod),
                             CASE WHEN a.attnotnull THEN ' NOT NULL' ELSE '' END, w.type,
                             CASE WHEN w.filled THEN ' NOT NULL with a default' ELSE '' END), '; ' ORDER BY w.n) INTO problem
      FROM ({{columns}}) AS w (n, tab, name, type, filled, value)
      JOIN pg_attribute a ON a.attrelid = jobs.oid AND a.attname = w.name AND NOT a.attisdropped
     WHERE w.tab = 'video_jobs'
       AND (format_type(a.atttypid, NULL) <> w.type
            OR a.attnotnull <> w.filled
            OR w.filled AND NOT a.atthasdef
            OR a.attgenerated <> '' OR a.attidentity <> '');
    IF problem IS NOT NULL THEN
        RAISE EXCEPTION 'video_jobs cannot be adopted: it has columns of the same names for another purpose: %: ALTER TABLE video_jobs RENAME COLUMN ...', problem;
    END IF;

    IF NOT pg_has_role(jobs.relowner, 'USAGE')
       AND NOT pg_has_role(jobs.relowner, CASE WHEN current_setting('server_version_num')::integer >= 160000 THEN 'SET' ELSE 'MEMBER' END)
    THEN
        -- RDS refuses the password of a role that inherits rds_iam.
        IF pg_has_role(jobs.relowner, (SELECT r.oid FROM pg_roles r WHERE r.rolname = 'rds_iam'), 'MEMBER') THEN
            RAISE EXCEPTION 'video_jobs belongs to role %, which logs in with IAM and which % may not act for: GRANT % TO % WITH INHERIT FALSE (from PostgreSQL 16 on; inherited, it would cost % its password), or run the SQL of make schema as %',
                jobs.owner, me, jobs.owner, me, me, jobs.owner;
        END IF;
        RAISE EXCEPTION 'video_jobs belongs to role %, which % may not act for: GRANT % TO %', jobs.owner, me, jobs.owner, me;
    END IF;
END
$$;
