-- Adds the columns that our tables lack and sets the storage. Safe to run again.
-- video_jobs comes last, since from its first change to the commit nobody else
-- gets at the table: constant defaults rewrite nothing.
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
        -- A table of another role is altered as that role; adopt.sql has checked
        -- that this is allowed.
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
            -- Unfinished submissions are few among many: inspect and a metric look
            -- for them. The release before had an index of one state.
            CREATE INDEX IF NOT EXISTS video_submissions_unfinished_idx ON video_submissions (created_at)
                WHERE state IN ('sending', 'unrecorded');
            DROP INDEX IF EXISTS video_submissions_sending_idx;
        ELSIF t.name = 'video_jobs' THEN
            -- Defaults where there are none: a row inserted with its id alone is
            -- due. created_at gets its default apart from the column, so that rows
            -- which were there before keep NULL in place of the migration's time.
            FOR option IN
                SELECT d.name, d.value
                  FROM (VALUES ('state',        '''pending'''),
                               ('next_poll_at', 'now() + interval ''15 seconds'''),
                               ('created_at',   'now()')) AS d (name, value)
                  JOIN pg_attribute a ON a.attrelid = t.oid AND a.attname = d.name AND NOT a.attisdropped AND NOT a.atthasdef
            LOOP
                EXECUTE format('ALTER TABLE video_jobs ALTER COLUMN %I SET DEFAULT %s', option.name, option.value);
            END LOOP;

            -- Storage, where the owner set nothing else.
            -- fillfactor 50: half of each page is left free, so that a claim's
            -- write stays on its page and moves no index entry, and VACUUM FULL or a
            -- restore, which fill pages to this mark only, do not inflate the table.
            -- The release before, whose tables lack columns, set 20, which is
            -- replaced; any other value is kept.
            -- autovacuum: dead rows are removed by the hundred, not by the fifth
            -- of the table, since each claim walks those at the head of the due index.
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
