-- Adds the columns that the tables lack and sets the storage. Safe to run again.
-- video_jobs comes last, since its first change locks it until the commit. The
-- constant defaults rewrite no row.
DO $$
DECLARE
    schema_version integer := current_setting('sumepoller.version')::integer;
    before         text := current_setting('role');
    t              record;
    missing        text;
    option         record;
BEGIN
    FOR t IN
        SELECT c.oid, w.name, pg_get_userbyid(c.relowner) AS owner, c.reloptions AS options
          FROM (VALUES (1, 'video_submissions'), (2, 'read_budget'), (3, 'video_jobs')) AS w (n, name)
          JOIN pg_class c ON c.oid = to_regclass(w.name)
         ORDER BY w.n
    LOOP
        -- Another role's table is altered as that role. adopt.sql has checked that
        -- this is allowed.
        IF NOT pg_has_role(t.owner, 'USAGE') THEN
            PERFORM set_config('role', t.owner, true);
        END IF;

        SELECT string_agg(format('ADD COLUMN %I %s%s%s', w.col, w.type, CASE WHEN w.filled THEN ' NOT NULL' ELSE '' END,
                                 coalesce(' DEFAULT ' || w.value, '')), ', ' ORDER BY w.n) INTO missing
          FROM ({{columns}}) AS w (n, tab, col, type, filled, value)
         WHERE w.tab = t.name
           AND NOT EXISTS (SELECT FROM pg_attribute a WHERE a.attrelid = t.oid AND a.attname = w.col AND NOT a.attisdropped);
        IF missing IS NOT NULL THEN
            EXECUTE format('ALTER TABLE %s %s', t.oid::regclass, missing);
        END IF;

        IF t.name = 'video_submissions' THEN
            -- For inspect and for a metric, which read the few submissions that are
            -- not finished. Version 2 had an index of one state.
            CREATE INDEX IF NOT EXISTS video_submissions_unfinished_idx ON video_submissions (created_at)
                WHERE state IN ('sending', 'unrecorded');
            DROP INDEX IF EXISTS video_submissions_sending_idx;
        ELSIF t.name = 'video_jobs' THEN
            -- Defaults where there are none, so that a row inserted with its id alone
            -- becomes due. created_at gets its default after the column, so that
            -- existing rows keep NULL and do not get the migration's time.
            FOR option IN
                SELECT d.name, d.value
                  FROM (VALUES ('state',        '''pending'''),
                               ('next_poll_at', 'now() + interval ''15 seconds'''),
                               ('created_at',   'now()')) AS d (name, value)
                  JOIN pg_attribute a ON a.attrelid = t.oid AND a.attname = d.name AND NOT a.attisdropped AND NOT a.atthasdef
            LOOP
                EXECUTE format('ALTER TABLE video_jobs ALTER COLUMN %I SET DEFAULT %s', option.name, option.value);
            END LOOP;

            -- Storage parameters that are not set yet. docs/tables.md explains them.
            -- fillfactor 50 leaves half of each page free, so that a claim's write
            -- stays on its page and changes no index. With less, VACUUM FULL and a
            -- restore would inflate the table. Version 2, whose tables lack columns,
            -- set 20, which is replaced.
            -- autovacuum removes dead rows by the hundred, since each claim walks over
            -- those at the head of the due index.
            FOR option IN
                SELECT d.name, d.value
                  FROM (VALUES ('fillfactor',                      '50'),
                               ('autovacuum_vacuum_threshold',     '500'),
                               ('autovacuum_vacuum_scale_factor',  '0.01'),
                               ('autovacuum_analyze_threshold',    '500'),
                               ('autovacuum_analyze_scale_factor', '0.05')) AS d (name, value)
                  LEFT JOIN pg_options_to_table(t.options) o ON o.option_name = d.name
                 WHERE o.option_name IS NULL
                    OR d.name = 'fillfactor' AND o.option_value = '20' AND schema_version > 0 AND missing IS NOT NULL
            LOOP
                EXECUTE format('ALTER TABLE video_jobs SET (%s = %s)', option.name, option.value);
            END LOOP;
        END IF;

        PERFORM set_config('role', before, true);
    END LOOP;
END
$$;
