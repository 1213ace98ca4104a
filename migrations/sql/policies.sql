    -- Part of trial.sql: tries the probe row under the policies of video_jobs, and
    -- warns of policies that hide or refuse rows.
    IF row_security_active(jobs) THEN
        -- All rows are open to the role if one policy for all commands has no
        -- condition, and no policy restricts it.
        SELECT bool_or(p.polpermissive AND p.polcmd = '*' AND pg_get_expr(p.polqual, jobs) = 'true'
                       AND coalesce(pg_get_expr(p.polwithcheck, jobs), 'true') = 'true')
               AND bool_and(p.polpermissive),
               string_agg(quote_ident(p.polname), ', ' ORDER BY p.polname) FILTER (WHERE NOT p.polpermissive)
          INTO open_to_me, restricting
          FROM pg_policy p
         WHERE p.polrelid = jobs
           AND (0::oid = ANY (p.polroles) OR EXISTS (SELECT FROM unnest(p.polroles) AS r (oid) WHERE r.oid <> 0 AND pg_has_role(r.oid, 'USAGE')));
        policy := format('CREATE POLICY %I ON video_jobs TO %s USING (true) WITH CHECK (true)',
                         current_user || CASE WHEN EXISTS (SELECT FROM pg_policy p WHERE p.polrelid = jobs AND p.polname = current_user) THEN '_all' ELSE '' END, me)
            || coalesce(', and ALTER POLICY or DROP POLICY ' || restricting || ', which restricts it', '');
        BEGIN
            PERFORM set_config('lock_timeout', '200ms', true);
            INSERT INTO video_jobs (job_id, state, next_poll_at, created_at, idempotency_key) VALUES (probe, 'pending', now(), now(), probe) ON CONFLICT (job_id) DO NOTHING;
            PERFORM FROM video_jobs WHERE job_id = probe;
            visible := FOUND;
            IF visible AND has_table_privilege(jobs, 'UPDATE') THEN
                PERFORM FROM video_jobs WHERE job_id = probe FOR NO KEY UPDATE;
                visible := FOUND;
                IF visible THEN
                    EXECUTE claim USING probe, lease;
                    EXECUTE settle USING probe, 'completed', '';
                END IF;
            END IF;
            RAISE EXCEPTION USING ERRCODE = worked_code;
        EXCEPTION WHEN OTHERS OR ASSERT_FAILURE THEN
            code := SQLSTATE;
        END;
        IF code = '42501' OR code = worked_code AND NOT visible THEN
            PERFORM set_config('role', before, true);
            RAISE WARNING USING ERRCODE = '01S02', MESSAGE = format('row-level security hides video_jobs from role %s or refuses its rows: %s', me, policy);
            RETURN;
        END IF;
        IF NOT coalesce(open_to_me, false) THEN
            RAISE WARNING USING ERRCODE = '01S03', MESSAGE = format('row-level security may hide rows of video_jobs from role %s: %s', me, policy);
        END IF;
    END IF;

