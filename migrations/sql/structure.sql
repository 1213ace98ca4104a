-- Checks the rules, children, publications and the encoding around video_jobs.
-- What the product cannot work with is an error before adoption (version 0), and a
-- warning later. Changes nothing. A warning has SQLSTATE 01S01.
DO $$
DECLARE
    refusing boolean := current_setting('sumepoller.version', true) = '0';
    jobs    pg_class;
    line    text;
    missing integer;
    n       integer;
BEGIN
    IF getdatabaseencoding() = 'SQL_ASCII' THEN
        RAISE WARNING USING ERRCODE = '01S01', MESSAGE = 'the database''s encoding is SQL_ASCII, so that the server checks and converts no characters: CREATE DATABASE ... ENCODING ''UTF8'' TEMPLATE template0, and move the tables there';
    ELSIF getdatabaseencoding() <> 'UTF8' THEN
        RAISE WARNING USING ERRCODE = '01S01', MESSAGE = format('the database''s encoding is %s: a final answer with other characters is not stored: CREATE DATABASE ... ENCODING ''UTF8'' TEMPLATE template0, and move the tables there', getdatabaseencoding());
    END IF;

    SELECT * INTO jobs FROM pg_class c WHERE c.oid = to_regclass('video_jobs');
    IF NOT FOUND THEN
        RETURN;
    END IF;

    -- What keeps the columns from being added is an error in every version.
    SELECT count(*) INTO missing
      FROM ({{columns}}) AS w (n, tab, col, type, filled, value)
     WHERE w.tab = 'video_jobs'
       AND NOT EXISTS (SELECT FROM pg_attribute a WHERE a.attrelid = jobs.oid AND a.attname = w.col AND NOT a.attisdropped);
    IF missing > 0 THEN
        line := CASE
            WHEN jobs.relispartition THEN
                (SELECT format('it is a partition of %1$s: ALTER TABLE %1$s DETACH PARTITION video_jobs', i.inhparent::regclass) FROM pg_inherits i WHERE i.inhrelid = jobs.oid)
            WHEN jobs.reloftype <> 0 THEN
                format('it is a table of type %s: ALTER TABLE video_jobs NOT OF', jobs.reloftype::regtype)
            WHEN jobs.relnatts + missing > 1600 THEN
                format('it has %s columns, dropped ones included, and PostgreSQL has room for 1600: %s more do not fit: move columns to another table and make video_jobs again with CREATE TABLE', jobs.relnatts, missing)
        END;
        IF line IS NOT NULL THEN
            RAISE EXCEPTION USING MESSAGE = 'video_jobs cannot be adopted: ' || line;
        END IF;
    END IF;

    FOR n, line IN
        -- A rule rewrites the product's statements or makes the server refuse them.
        SELECT 1, format('rule %1$I rewrites its %2$s statements: DROP RULE %1$I ON video_jobs', r.rulename, CASE r.ev_type WHEN '2' THEN 'UPDATE' ELSE 'INSERT' END)
          FROM pg_rewrite r
         WHERE r.ev_class = jobs.oid AND r.ev_type IN ('2', '3') AND r.ev_enabled IN ('O', 'A')
        UNION ALL
        -- ctid is unique within one table only, and a statement on a parent writes
        -- to its children too.
        SELECT 2, format('table %1$s inherits from it: ALTER TABLE %1$s NO INHERIT video_jobs', i.inhrelid::regclass)
          FROM pg_inherits i WHERE i.inhparent = jobs.oid
        UNION ALL
        SELECT 3, format(CASE WHEN jobs.relispartition THEN 'it is a partition of %1$s: ALTER TABLE %1$s DETACH PARTITION video_jobs'
                              ELSE 'it inherits from table %1$s: ALTER TABLE video_jobs NO INHERIT %1$s' END, i.inhparent::regclass)
          FROM pg_inherits i WHERE i.inhrelid = jobs.oid
        UNION ALL
        -- The server refuses each UPDATE (55000).
        SELECT 4, format('publication %I publishes its updates, and %s: %s', p.pubname,
                         CASE jobs.relreplident WHEN 'n' THEN 'its REPLICA IDENTITY is NOTHING'
                                                WHEN 'i' THEN 'the index of its REPLICA IDENTITY is gone' ELSE 'it has no primary key as REPLICA IDENTITY' END,
                         (SELECT CASE WHEN bool_or(i.indisprimary) THEN 'ALTER TABLE video_jobs REPLICA IDENTITY DEFAULT'
                                      ELSE 'ALTER TABLE video_jobs REPLICA IDENTITY USING INDEX ' || min(quote_ident(c.relname)) END
                            FROM pg_index i
                            JOIN pg_class c ON c.oid = i.indexrelid
                            JOIN pg_attribute a ON a.attrelid = i.indrelid AND a.attname = 'job_id'
                           WHERE i.indrelid = jobs.oid AND i.indisunique AND i.indisvalid AND i.indimmediate AND i.indpred IS NULL
                             AND (i.indisprimary OR i.indnkeyatts = 1 AND i.indkey[0] = a.attnum)))
          FROM pg_publication_tables t
          JOIN pg_publication p ON p.pubname = t.pubname AND p.pubupdate
         WHERE t.schemaname = (SELECT s.nspname FROM pg_namespace s WHERE s.oid = jobs.relnamespace) AND t.tablename = jobs.relname AND jobs.relpersistence = 'p'
           AND jobs.relreplident <> 'f'
           AND NOT EXISTS (SELECT FROM pg_index i WHERE i.indrelid = jobs.oid AND i.indisvalid
                              AND (jobs.relreplident = 'd' AND i.indisprimary OR jobs.relreplident = 'i' AND i.indisreplident))
        ORDER BY 1, 2
    LOOP
        IF refusing THEN
            RAISE EXCEPTION USING MESSAGE = 'video_jobs cannot be adopted: ' || line;
        END IF;
        RAISE WARNING USING ERRCODE = '01S01', MESSAGE = 'video_jobs cannot be worked on: ' || line;
    END LOOP;

    -- This works until somebody adds a publication, which then stops every UPDATE.
    IF jobs.relreplident = 'n' AND NOT EXISTS (SELECT FROM pg_publication_tables t WHERE t.schemaname = (SELECT s.nspname FROM pg_namespace s WHERE s.oid = jobs.relnamespace) AND t.tablename = jobs.relname) THEN
        RAISE WARNING USING ERRCODE = '01S01', MESSAGE = 'the REPLICA IDENTITY of video_jobs is NOTHING, so that the first publication of it will stop every UPDATE: ALTER TABLE video_jobs REPLICA IDENTITY DEFAULT';
    END IF;
END
$$;
