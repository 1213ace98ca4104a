    -- The end of trial.sql: one line for each write that failed, with what refused it
    -- and what to do. The server's message is not shown: it may hold a row.
    SELECT count(*) INTO states_failed FROM jsonb_array_elements(failures) AS e (v) WHERE e.v->>'kind' = 'finish' AND NOT (e.v->>'partly')::boolean;
    FOR f IN
        SELECT min(e.n) AS n, e.kind, e.code, e.constr, e.tab, e.col, e.typ, e.trig, e.partly, array_agg(e.word ORDER BY e.n) AS states
          FROM jsonb_to_recordset(failures) AS e (n integer, kind text, word text, code text, constr text, tab text, col text, typ text, trig text, partly boolean)
         GROUP BY e.kind, e.code, e.constr, e.tab, e.col, e.typ, e.trig, e.partly
         ORDER BY 1
    LOOP
        SELECT a.atttypmod - 4 AS id_length,
               (SELECT min(p.pubname) FROM pg_publication_tables p JOIN pg_class c ON c.relname = p.tablename JOIN pg_namespace s ON s.oid = c.relnamespace AND s.nspname = p.schemaname WHERE c.oid = jobs) AS publication,
               k.contype, k.convalidated, pg_get_expr(k.conbin, k.conrelid) AS condition,
               t.tgfoid::regprocedure AS calls,
               coalesce(f.trig, (SELECT string_agg(quote_ident(o.tgname), ' or ' ORDER BY o.tgname) FROM pg_trigger o
                                  WHERE o.tgrelid = jobs AND NOT o.tgisinternal AND o.tgenabled IN ('O', 'A')
                                    AND o.tgtype & CASE WHEN f.kind = 'insert' THEN 4 ELSE 16 END <> 0)) AS triggers
          INTO found_in
          FROM pg_attribute a
          LEFT JOIN pg_constraint k ON k.conrelid = jobs AND k.conname = f.constr
          LEFT JOIN pg_trigger t ON t.tgrelid = jobs AND t.tgname = f.trig
         WHERE a.attrelid = jobs AND a.attname = 'job_id';

        CASE
        WHEN f.typ <> '' AND f.constr <> '' THEN
            object := format('constraint %I of domain %I', f.constr, f.typ);
            cure := format('ALTER DOMAIN %I DROP CONSTRAINT %I', f.typ, f.constr);
        WHEN f.typ <> '' THEN
            object := format('domain %I', f.typ);
            cure := format('ALTER DOMAIN %I DROP NOT NULL', f.typ);
        WHEN f.tab = 'video_jobs' AND found_in.contype = 'c' AND f.kind = 'finish' THEN
            object := format('constraint %I', f.constr);
            cure := format('ALTER TABLE video_jobs DROP CONSTRAINT %1$I, ADD CONSTRAINT %1$I CHECK (%2$s OR state IN (%3$s))%4$s', f.constr, found_in.condition,
                           (SELECT string_agg(quote_literal(w), ', ') FROM unnest(f.states) AS w), CASE WHEN found_in.convalidated THEN '' ELSE ' NOT VALID' END);
        WHEN f.tab = 'video_jobs' AND found_in.contype IS NOT NULL AND f.code <> '23502' THEN
            object := format('constraint %I', f.constr);
            cure := format('ALTER TABLE video_jobs DROP CONSTRAINT %I', f.constr);
        WHEN f.tab = 'video_jobs' AND f.code IN ('23505', '23P01') THEN
            object := format('index %I', f.constr);
            cure := format('DROP INDEX %I', f.constr);
        WHEN f.tab = 'video_jobs' AND f.col <> '' THEN
            object := format('column %I, which is NOT NULL and has no default', f.col);
            cure := format('ALTER TABLE video_jobs ALTER COLUMN %1$I SET DEFAULT ..., or ALTER TABLE video_jobs ALTER COLUMN %1$I DROP NOT NULL', f.col);
        WHEN f.code = '22001' AND f.kind = 'insert' AND found_in.id_length < length(probe) THEN
            object := format('column job_id, which is varchar(%s)', found_in.id_length);
            cure := 'ALTER TABLE video_jobs ALTER COLUMN job_id TYPE text';
        WHEN f.code = '55000' AND found_in.publication IS NOT NULL THEN
            CONTINUE; -- structure.sql names the publication
        WHEN f.code = '42P10' AND found_in.publication IS NOT NULL THEN
            object := format('publication %I', found_in.publication);
            cure := format('ALTER PUBLICATION %1$I DROP TABLE video_jobs, and ADD TABLE video_jobs without a list of columns and without WHERE', found_in.publication);
        WHEN f.code IN ('40001', '40P01', '55P03') OR left(f.code, 2) IN ('08', '25', '53', '57', '58', 'XX') THEN
            RAISE WARNING USING ERRCODE = '01S01', MESSAGE = format('the writes to video_jobs could not all be tried (SQLSTATE %s): migrate again', f.code);
            CONTINUE;
        WHEN found_in.triggers IS NOT NULL THEN
            object := 'trigger ' || CASE WHEN f.trig IS NULL THEN found_in.triggers ELSE quote_ident(f.trig) END;
            cure := CASE
                WHEN f.code IN ('42601', '42804') THEN 'have its function name the columns in place of OLD.* or NEW.*'
                WHEN f.code = not_kept_code THEN 'have its function return NEW with the values that were written'
                WHEN f.code = '42501' THEN format('GRANT to role %s what its function %s needs, or make that SECURITY DEFINER', me, coalesce(found_in.calls::text, ''))
                ELSE 'have its function accept the write' END
                || CASE WHEN f.trig IS NOT NULL THEN format(', or DROP TRIGGER %I ON video_jobs', f.trig) ELSE '' END;
        WHEN f.constr <> '' THEN
            object := format('constraint %I of table %I', f.constr, f.tab);
            cure := format('ALTER TABLE %I DROP CONSTRAINT %I', f.tab, f.constr);
        ELSE
            object := 'no trigger or constraint';
            cure := 'run such a write in psql, which shows the server''s message';
        END CASE;
        what := format('%s %s%s (%s%s)', CASE WHEN f.code = not_kept_code THEN 'does not keep' ELSE 'refuses' END,
            CASE f.kind WHEN 'insert' THEN 'the INSERT of an id, so that submit refuses before it posts' WHEN 'claim' THEN 'the claim' WHEN 'reschedule' THEN 'a new due time'
                        WHEN 'error' THEN 'an error''s record' WHEN 'reopen' THEN 'the reopening of a finished row'
                        ELSE 'state ' || array_to_string(f.states, ', ') END,
            CASE WHEN f.partly THEN ' of some rows' ELSE '' END, object, CASE WHEN f.code = not_kept_code THEN '' ELSE ', SQLSTATE ' || f.code END);
        -- A claim breaks a constraint only on rows that broke it before (NOT VALID).
        IF refusing AND NOT f.partly AND f.code <> '42501' AND NOT (f.kind = 'claim' AND f.tab = 'video_jobs' AND found_in.convalidated IS FALSE)
           AND (f.kind IN ('claim', 'reschedule') OR f.kind = 'finish' AND states_failed = cardinality(states) OR f.kind = 'insert' AND f.code IN ('42601', '42804')) THEN
            RAISE EXCEPTION USING MESSAGE = format('video_jobs cannot be adopted: it %s: %s', what, cure);
        END IF;
        RAISE WARNING USING ERRCODE = CASE f.code WHEN '42501' THEN '01S02' ELSE '01S01' END, MESSAGE = format('video_jobs %s: %s', what, cure);
    END LOOP;
