-- For psql: builds the due index where the table has none. What a failed build
-- left behind is dropped first.
DO $$
DECLARE
    index  record;
    found  boolean := false;
    before text := current_setting('role');
    owner  name := (SELECT pg_get_userbyid(relowner) FROM pg_class WHERE oid = 'video_jobs'::regclass);
BEGIN
    IF NOT pg_has_role(owner, 'USAGE') THEN
        PERFORM set_config('role', owner, true);
    END IF;
    FOR index IN {{due_indexes}} LOOP
        IF index.valid THEN
            found := true;
        ELSE
            EXECUTE 'DROP INDEX ' || index.name;
        END IF;
    END LOOP;
    IF NOT found THEN
        {{due_index}};
    END IF;
    PERFORM set_config('role', before, true);
END
$$;
