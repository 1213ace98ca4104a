-- Tries the product's writes on video_jobs, after its columns were added, and rolls
-- each back. Only what no transaction rolls back remains, such as the numbers of a
-- sequence. Each attempt is a subtransaction. All together stop after 0.6 s, and no
-- attempt waits for a lock longer than 0.2 s.
--
-- The updates are tried on a probe row. If the table refuses that row or an update
-- of it, they are tried on up to five existing rows. Before adoption (version 0) a
-- write that fails on every row is an error. Everything else, and everything in
-- later versions, is a warning that says what to do. Its SQLSTATE is 01S02 for a
-- missing right or policy, 01S03 for a policy that may hide rows, otherwise 01S01.
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
    states     text[] := '{completed,complete,success,succeeded,ready,failed,error,errored,canceled,cancelled,expired,not_found,stopped}';
    -- SQLSTATEs with which an attempt ends, beside those of the server.
    worked_code   text := 'SPEND'; -- the table kept all its writes
    not_kept_code text := 'SPSTK'; -- the table took a write and did not keep it
    busy_code     text := 'SPBSY'; -- another program holds the row
    -- The attempts: each step is tried on one row after another.
    step        record;
    targets     text[];            -- the rows for this step
    tried       integer;           -- how many of them were tried
    existing    text[];            -- rows of the user; NULL: not read yet
    extended    boolean;           -- they are among the targets
    target      text;
    disable     text[];            -- triggers to disable: first none, then one at a time
    disabled    text;
    stage       text;              -- the write that the attempt has reached
    state_now   text;
    worked      boolean;           -- the step worked on a row
    inserted    boolean := false;  -- the first step worked
    finishable  text;              -- the first state that the table takes, for the reopening
    stopped     boolean := false;  -- the time was over
    -- What failed, and where.
    failed_at   text;
    code        text;
    code_then   text;              -- of the attempt with a disabled trigger
    constr      text;
    tab         text;
    col         text;
    typ         text;
    trig        text;
    failure     jsonb;             -- of this step
    failures    jsonb := '[]';
    me          text;              -- the current role, quoted
    -- For row-level security.
    open_to_me  boolean;
    restricting text;
    policy      text;
    visible     boolean;
    -- For the report.
    f             record;
    found_in      record;
    states_failed integer;
    what          text;
    object        text;
    cure          text;
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

{{policies}}    <<steps>>
    FOR step IN
        SELECT 1 AS n, 'insert' AS kind, NULL AS word UNION ALL
        SELECT 2, 'claim', NULL UNION ALL
        SELECT 3, 'reschedule', 'pending' UNION ALL
        SELECT 4, 'error', 'pending' UNION ALL
        SELECT 4 + w.n::integer, 'finish', w.word FROM unnest(states) WITH ORDINALITY AS w (word, n) UNION ALL
        SELECT 100, 'reopen', NULL
        ORDER BY 1
    LOOP
        EXIT steps WHEN step.n = 2 AND NOT has_table_privilege(jobs, 'UPDATE') OR step.kind = 'reopen' AND finishable IS NULL;
        targets := CASE WHEN step.n = 1 OR inserted THEN ARRAY[probe] ELSE '{}' END;
        tried := 0; extended := false; worked := false; failure := NULL;
        <<targets>>
        LOOP
            -- Existing rows, only if the probe failed.
            IF tried >= cardinality(targets) THEN
                EXIT targets WHEN step.n = 1 OR extended;
                extended := true;
                IF existing IS NULL THEN
                    -- Through the due index, otherwise among the first rows of the
                    -- table, since a long scan is not allowed here. Pending rows come
                    -- first; a finished one is reopened for the attempt.
                    IF EXISTS (SELECT FROM ({{due_indexes}}) AS d WHERE d.valid) THEN
                        existing := ARRAY((SELECT v.job_id::text FROM video_jobs v WHERE v.state = 'pending' ORDER BY v.next_poll_at LIMIT 3)
                                        UNION (SELECT v.job_id::text FROM video_jobs v WHERE v.state = 'pending' ORDER BY v.next_poll_at DESC LIMIT 2));
                    END IF;
                    IF coalesce(cardinality(existing), 0) = 0 THEN
                        existing := ARRAY(SELECT s.job_id::text FROM (SELECT v.job_id, v.state FROM video_jobs v LIMIT 20000) s
                                         ORDER BY s.state IS DISTINCT FROM 'pending' LIMIT 5);
                    END IF;
                END IF;
                targets := targets || existing;
                EXIT targets WHEN tried >= cardinality(targets);
            END IF;
            tried := tried + 1;
            target := targets[tried];
            disable := '{""}'; code := NULL; trig := NULL;
            <<attempts>>
            FOR i IN 1 .. 9 LOOP
                EXIT attempts WHEN i > cardinality(disable);
                IF clock_timestamp() > stop_at THEN
                    stopped := true;
                    EXIT steps WHEN code IS NULL; -- otherwise report the failure, without a trigger's name
                    EXIT attempts;
                END IF;
                disabled := disable[i];
                BEGIN
                    PERFORM set_config('lock_timeout', '200ms', true);
                    stage := 'disable';
                    IF disabled <> '' THEN
                        EXECUTE format('ALTER TABLE video_jobs DISABLE TRIGGER %I', disabled);
                    END IF;
                    stage := 'insert';
                    IF target = probe THEN
                        INSERT INTO video_jobs (job_id, state, next_poll_at, created_at, idempotency_key)
                        VALUES (probe, 'pending', now() + interval '15 seconds', now(), probe) ON CONFLICT (job_id) DO NOTHING;
                        SET CONSTRAINTS ALL IMMEDIATE;
                        PERFORM FROM video_jobs v WHERE v.job_id = probe AND v.state = 'pending';
                        IF NOT FOUND THEN RAISE EXCEPTION USING ERRCODE = not_kept_code; END IF;
                    ELSE
                        SELECT v.state INTO state_now FROM video_jobs v WHERE v.job_id = target FOR UPDATE SKIP LOCKED;
                        IF NOT FOUND THEN RAISE EXCEPTION USING ERRCODE = busy_code; END IF;
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
                        IF NOT FOUND THEN RAISE EXCEPTION USING ERRCODE = not_kept_code; END IF;
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
                        IF NOT FOUND THEN RAISE EXCEPTION USING ERRCODE = not_kept_code; END IF;
                    END IF;
                    IF step.kind = 'reopen' THEN
                        stage := 'reopen';
                        EXECUTE reopen USING target;
                        SET CONSTRAINTS ALL IMMEDIATE;
                        PERFORM FROM video_jobs v WHERE v.job_id = target AND v.state = 'pending' AND v.finished_at IS NULL;
                        IF NOT FOUND THEN RAISE EXCEPTION USING ERRCODE = not_kept_code; END IF;
                    END IF;
                    RAISE EXCEPTION USING ERRCODE = worked_code;
                EXCEPTION WHEN OTHERS OR ASSERT_FAILURE THEN
                    code_then := SQLSTATE;
                    IF disabled = '' THEN
                        code := code_then; failed_at := stage;
                        GET STACKED DIAGNOSTICS constr = CONSTRAINT_NAME, tab = TABLE_NAME, col = COLUMN_NAME, typ = PG_DATATYPE_NAME;
                    END IF;
                END;
                IF disabled <> '' THEN
                    -- This trigger is the cause if, without it, the write works or
                    -- fails with another code.
                    IF stage <> 'disable' AND code_then <> code THEN
                        trig := disabled;
                        EXIT attempts;
                    END IF;
                ELSIF refusing AND stage = step.kind AND code NOT IN (worked_code, busy_code) AND (tab <> 'video_jobs' OR constr || col = '') THEN
                    disable := disable || ARRAY(SELECT t.tgname::text FROM pg_trigger t
                                           WHERE t.tgrelid = jobs AND NOT t.tgisinternal AND t.tgenabled IN ('O', 'A')
                                             AND t.tgtype & CASE WHEN step.n = 1 THEN 4 ELSE 16 END <> 0 ORDER BY t.tgname);
                END IF;
            END LOOP attempts;
            IF code = worked_code THEN
                worked := true;
                EXIT targets;
            END IF;
            -- A write of an earlier step has been reported by that step. A row that is
            -- locked, or cannot be reopened, shows nothing.
            IF failed_at = step.kind AND code NOT IN (worked_code, busy_code) AND failure IS NULL THEN
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
