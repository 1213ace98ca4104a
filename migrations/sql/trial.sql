-- Tries the product's own writes on video_jobs, with the columns in place, and
-- rolls each back: nothing stays but what no transaction takes back (a
-- sequence's numbers). Each attempt is one subtransaction, all together stop
-- after 0.6 s, and no attempt waits for a lock longer than 0.2 s.
--
-- A probe row serves for the updates. Where the table refuses that row, or
-- an update of it, up to five rows that exist serve as well. Before adoption
-- (version 0) a write that every row refuses is an error; all else, and
-- everything in later versions, is a warning with its cure: 01S02 where a right
-- or a policy is missing, 01S03 where a policy may hide rows, else 01S01.
DO $$
DECLARE
    refusing   boolean := coalesce(current_setting('sumepoller.version', true), '') = '0';
    before     text := current_setting('role');
    stop_at    timestamptz := clock_timestamp() + interval '600 milliseconds';
    jobs       oid := 'video_jobs'::regclass;
    owner      name := (SELECT pg_get_userbyid(c.relowner) FROM pg_class c WHERE c.oid = 'video_jobs'::regclass);
    probe      text := 'job_' || replace(gen_random_uuid()::text, '-', '');
    lease      uuid := gen_random_uuid();
    claim      text := 'UPDATE video_jobs SET lease_id = $2, leased_until = now() + interval ''30 seconds'', lost_leases = lost_leases + 0 WHERE job_id = $1';
    settle     text := 'UPDATE video_jobs SET leased_until = ''-infinity'', lost_leases = 0, state = $2,
        next_poll_at = CASE WHEN $2 = ''pending'' THEN now() + interval ''15 seconds'' ELSE next_poll_at END,
        finished_at = CASE WHEN $2 = ''pending'' THEN finished_at ELSE now() END,
        final_status = CASE WHEN $2 = ''pending'' THEN final_status ELSE jsonb_build_object(''status'', $2::text) END,
        polls = polls + 1, last_polled_at = now(),
        consecutive_errors = CASE WHEN $3 = '''' THEN 0 ELSE consecutive_errors + 1 END, not_found_answers = 0,
        failing_since = CASE WHEN $3 = '''' THEN NULL ELSE coalesce(failing_since, now()) END,
        last_error = coalesce(nullif($3, ''''), last_error), sume_status = $2
        WHERE job_id = $1';
    reopen     text := 'UPDATE video_jobs SET state = ''pending'', next_poll_at = statement_timestamp(), finished_at = NULL, consecutive_errors = 0,
        failing_since = NULL, lost_leases = 0, lease_id = ''00000000-0000-0000-0000-000000000000'' WHERE job_id = $1';
    words      text[] := '{completed,complete,success,succeeded,ready,failed,error,errored,canceled,cancelled,expired,not_found,stopped}';
    finishable text;                -- the first word that the table takes, for the reopening
    done       text := 'SPEND';     -- SQLSTATE of an attempt whose writes were all kept
    unkept     text := 'SPSTK';     -- of one whose write the table took and did not keep
    busy       text := 'SPBSY';     -- of a row that another program holds
    step       record;
    targets    text[];
    others     text[];              -- rows that exist; NULL: not looked for yet
    extended   boolean;             -- they are among the targets
    target     text;
    tried      integer;             -- targets so far
    offs       text[];              -- triggers to switch off: none, then one at a time
    off        text;
    stage      text;                -- the write that an attempt had come to
    failed_at  text;
    code       text;
    code_off   text;
    constr     text;
    tab        text;
    col        text;
    typ        text;
    trig       text;
    state_now  text;
    kept       boolean;
    worked     boolean;
    inserted   boolean := false;
    stopped    boolean := false;
    failure    jsonb;
    failures   jsonb := '[]';
    open_to_me boolean;
    me         text;
    policy     text;
    f          record;
    ours       record;
    words_hit  integer;
    what       text;
    object     text;
    cure       text;
BEGIN
    IF current_setting('sumepoller.made', true) = 'true' THEN
        RETURN;
    END IF;
    IF NOT pg_has_role(owner, 'USAGE')
       AND pg_has_role(owner, CASE WHEN current_setting('server_version_num')::integer >= 160000 THEN 'SET' ELSE 'MEMBER' END) THEN
        PERFORM set_config('role', owner, true);
    END IF;
    me := quote_ident(current_user);
    IF NOT has_table_privilege(jobs, 'SELECT') OR NOT has_table_privilege(jobs, 'INSERT') THEN
        PERFORM set_config('role', before, true);
        RETURN;
    END IF;

    IF row_security_active(jobs) THEN
        -- A policy for all commands, without a condition, and none that restricts.
        SELECT bool_or(p.polpermissive AND p.polcmd = '*' AND pg_get_expr(p.polqual, jobs) = 'true'
                       AND coalesce(pg_get_expr(p.polwithcheck, jobs), 'true') = 'true')
               AND bool_and(p.polpermissive) INTO open_to_me
          FROM pg_policy p
         WHERE p.polrelid = jobs AND (0::oid = ANY (p.polroles) OR EXISTS (SELECT FROM unnest(p.polroles) AS r (oid) WHERE r.oid <> 0 AND pg_has_role(r.oid, 'USAGE')));
        policy := format('CREATE POLICY %I ON video_jobs TO %s USING (true) WITH CHECK (true)',
                         current_user || CASE WHEN EXISTS (SELECT FROM pg_policy p WHERE p.polrelid = jobs AND p.polname = current_user) THEN '_all' ELSE '' END, me)
            || coalesce((SELECT ', and ALTER POLICY or DROP POLICY ' || string_agg(quote_ident(p.polname), ', ' ORDER BY p.polname) || ', which restricts it'
                           FROM pg_policy p
                          WHERE p.polrelid = jobs AND NOT p.polpermissive
                            AND (0::oid = ANY (p.polroles) OR EXISTS (SELECT FROM unnest(p.polroles) AS r (oid) WHERE r.oid <> 0 AND pg_has_role(r.oid, 'USAGE')))), '');
        BEGIN
            PERFORM set_config('lock_timeout', '200ms', true);
            INSERT INTO video_jobs (job_id, state, next_poll_at, created_at, idempotency_key) VALUES (probe, 'pending', now(), now(), probe) ON CONFLICT (job_id) DO NOTHING;
            PERFORM FROM video_jobs WHERE job_id = probe;
            kept := FOUND;
            IF kept AND has_table_privilege(jobs, 'UPDATE') THEN
                PERFORM FROM video_jobs WHERE job_id = probe FOR NO KEY UPDATE;
                kept := FOUND;
                IF kept THEN
                    EXECUTE claim USING probe, lease;
                    EXECUTE settle USING probe, 'completed', '';
                END IF;
            END IF;
            RAISE EXCEPTION USING ERRCODE = done;
        EXCEPTION WHEN OTHERS OR ASSERT_FAILURE THEN
            code := SQLSTATE;
        END;
        IF code = '42501' OR code = done AND NOT kept THEN
            PERFORM set_config('role', before, true);
            RAISE WARNING USING ERRCODE = '01S02', MESSAGE = format('row-level security hides video_jobs from role %s or refuses its rows: %s', me, policy);
            RETURN;
        END IF;
        IF NOT coalesce(open_to_me, false) THEN
            RAISE WARNING USING ERRCODE = '01S03', MESSAGE = format('row-level security may hide rows of video_jobs from role %s: %s', me, policy);
        END IF;
    END IF;

    <<steps>>
    FOR step IN
        SELECT 1 AS n, 'insert' AS kind, NULL AS word UNION ALL
        SELECT 2, 'claim', NULL UNION ALL
        SELECT 3, 'reschedule', 'pending' UNION ALL
        SELECT 4, 'error', 'pending' UNION ALL
        SELECT 4 + w.n::integer, 'finish', w.word FROM unnest(words) WITH ORDINALITY AS w (word, n) UNION ALL
        SELECT 100, 'reopen', NULL
        ORDER BY 1
    LOOP
        EXIT steps WHEN step.n = 2 AND NOT has_table_privilege(jobs, 'UPDATE') OR step.kind = 'reopen' AND finishable IS NULL;
        targets := CASE WHEN step.n = 1 OR inserted THEN ARRAY[probe] ELSE '{}' END;
        tried := 0; extended := false; worked := false; failure := NULL;
        <<targets>>
        LOOP
            -- The rows that exist, only where the probe does not do.
            IF tried >= cardinality(targets) THEN
                EXIT targets WHEN step.n = 1 OR extended;
                extended := true;
                IF others IS NULL THEN
                    -- Through the due index, else among the first rows of the
                    -- table: nothing may be scanned at length here. Pending ones
                    -- first; a finished one is reopened for the attempt.
                    IF EXISTS (SELECT FROM ({{due_indexes}}) AS d WHERE d.valid) THEN
                        others := ARRAY((SELECT v.job_id::text FROM video_jobs v WHERE v.state = 'pending' ORDER BY v.next_poll_at LIMIT 3)
                                        UNION (SELECT v.job_id::text FROM video_jobs v WHERE v.state = 'pending' ORDER BY v.next_poll_at DESC LIMIT 2));
                    END IF;
                    IF coalesce(cardinality(others), 0) = 0 THEN
                        others := ARRAY(SELECT s.job_id::text FROM (SELECT v.job_id, v.state FROM video_jobs v LIMIT 20000) s
                                         ORDER BY s.state IS DISTINCT FROM 'pending' LIMIT 5);
                    END IF;
                END IF;
                targets := targets || others;
                EXIT targets WHEN tried >= cardinality(targets);
            END IF;
            tried := tried + 1;
            target := targets[tried];
            offs := '{""}'; code := NULL; trig := NULL;
            <<attempts>>
            FOR i IN 1 .. 9 LOOP
                EXIT attempts WHEN i > cardinality(offs);
                IF clock_timestamp() > stop_at THEN
                    stopped := true;
                    EXIT steps WHEN code IS NULL; -- else what failed is told, without the trigger's name
                    EXIT attempts;
                END IF;
                off := offs[i];
                BEGIN
                    PERFORM set_config('lock_timeout', '200ms', true);
                    stage := 'switch off';
                    IF off <> '' THEN
                        EXECUTE format('ALTER TABLE video_jobs DISABLE TRIGGER %I', off);
                    END IF;
                    stage := 'insert';
                    IF target = probe THEN
                        INSERT INTO video_jobs (job_id, state, next_poll_at, created_at, idempotency_key)
                        VALUES (probe, 'pending', now() + interval '15 seconds', now(), probe) ON CONFLICT (job_id) DO NOTHING;
                        SET CONSTRAINTS ALL IMMEDIATE;
                        PERFORM FROM video_jobs v WHERE v.job_id = probe AND v.state = 'pending';
                        IF NOT FOUND THEN RAISE EXCEPTION USING ERRCODE = unkept; END IF;
                    ELSE
                        SELECT v.state INTO state_now FROM video_jobs v WHERE v.job_id = target FOR UPDATE SKIP LOCKED;
                        IF NOT FOUND THEN RAISE EXCEPTION USING ERRCODE = busy; END IF;
                        stage := 'row';
                        IF state_now IS DISTINCT FROM 'pending' THEN
                            EXECUTE reopen USING target;
                        END IF;
                    END IF;
                    IF step.n > 1 THEN
                        stage := 'claim';
                        EXECUTE claim USING target, lease;
                        SET CONSTRAINTS ALL IMMEDIATE;
                        PERFORM FROM video_jobs v WHERE v.job_id = target AND v.lease_id = lease AND v.leased_until > now() AND v.state = 'pending';
                        IF NOT FOUND THEN RAISE EXCEPTION USING ERRCODE = unkept; END IF;
                    END IF;
                    IF step.n > 2 THEN
                        stage := CASE WHEN step.kind = 'reopen' THEN 'finish' ELSE step.kind END;
                        EXECUTE settle USING target, coalesce(step.word, finishable), CASE WHEN step.kind = 'error' THEN 'http_5xx 500' ELSE '' END;
                        IF stage = 'finish' THEN
                            PERFORM pg_notify('video_jobs_finished', json_build_object('job_id', target, 'state', step.word)::text);
                        END IF;
                        SET CONSTRAINTS ALL IMMEDIATE;
                        PERFORM FROM video_jobs v
                          WHERE v.job_id = target AND v.leased_until = '-infinity' AND v.state = coalesce(step.word, finishable)
                            AND CASE WHEN v.state = 'pending' THEN v.next_poll_at > now() ELSE v.finished_at IS NOT NULL END;
                        IF NOT FOUND THEN RAISE EXCEPTION USING ERRCODE = unkept; END IF;
                    END IF;
                    IF step.kind = 'reopen' THEN
                        stage := 'reopen';
                        EXECUTE reopen USING target;
                        SET CONSTRAINTS ALL IMMEDIATE;
                        PERFORM FROM video_jobs v WHERE v.job_id = target AND v.state = 'pending' AND v.finished_at IS NULL;
                        IF NOT FOUND THEN RAISE EXCEPTION USING ERRCODE = unkept; END IF;
                    END IF;
                    RAISE EXCEPTION USING ERRCODE = done;
                EXCEPTION WHEN OTHERS OR ASSERT_FAILURE THEN
                    code_off := SQLSTATE;
                    IF off = '' THEN
                        code := code_off; failed_at := stage;
                        GET STACKED DIAGNOSTICS constr = CONSTRAINT_NAME, tab = TABLE_NAME, col = COLUMN_NAME, typ = PG_DATATYPE_NAME;
                    END IF;
                END;
                IF off <> '' THEN
                    -- Without this trigger it works, or fails for another reason.
                    IF stage <> 'switch off' AND code_off <> code THEN
                        trig := off;
                        EXIT attempts;
                    END IF;
                ELSIF refusing AND stage = step.kind AND code NOT IN (done, busy) AND (tab <> 'video_jobs' OR constr || col = '') THEN
                    offs := offs || ARRAY(SELECT t.tgname::text FROM pg_trigger t
                                           WHERE t.tgrelid = jobs AND NOT t.tgisinternal AND t.tgenabled IN ('O', 'A')
                                             AND t.tgtype & CASE WHEN step.n = 1 THEN 4 ELSE 16 END <> 0 ORDER BY t.tgname);
                END IF;
            END LOOP attempts;
            IF code = done THEN
                worked := true;
                EXIT targets;
            END IF;
            -- An earlier step tells what fails before this one. A row that is
            -- held, or cannot be reopened, says nothing.
            IF failed_at = step.kind AND code NOT IN (done, busy) AND failure IS NULL THEN
                failure := jsonb_build_object('n', step.n, 'kind', step.kind, 'word', step.word, 'code', code,
                                              'constr', constr, 'tab', tab, 'col', col, 'typ', typ, 'trig', trig);
            END IF;
        END LOOP targets;
        IF failure IS NOT NULL THEN
            failures := failures || (failure || jsonb_build_object('partly', worked));
        END IF;
        IF step.n = 1 THEN
            inserted := worked;
        ELSIF step.n = 2 AND NOT worked THEN
            IF failure IS NULL THEN
                RAISE WARNING USING ERRCODE = '01S01', MESSAGE = 'video_jobs holds no row that could serve for it, so that only the INSERT was tried: migrate again when it holds a pending one';
            END IF;
            EXIT steps;
        ELSIF step.kind = 'finish' AND worked THEN
            finishable := coalesce(finishable, step.word);
        END IF;
    END LOOP steps;

    PERFORM set_config('role', before, true);
    IF stopped THEN
        RAISE WARNING USING ERRCODE = '01S01', MESSAGE = 'writing to video_jobs is so slow that not all writes were tried in 0.6 s: look for a slow trigger on it';
    END IF;

{{report}}END
$$;
