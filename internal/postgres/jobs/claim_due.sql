-- The rows to claim, locked. Each condition is inside the locked and limited
-- statement: otherwise rows that are not claimable would fill the batch. Why
-- each condition has its form: docs/design.md, "Statements and the planner".
WITH due AS MATERIALIZED (
    SELECT ctid AS row_at, job_id,
           -- This claim was sent before and its answer was lost: its reads are
           -- counted already, on the day when the lease began.
           {own_lease} AS paid,
           to_char((CASE WHEN {own_lease}
                         THEN leased_until - interval '1 microsecond' * least(@longest_lease::bigint, @lease_for::bigint * power(4, least(10, lost_leases)))
                         ELSE now() END) AT TIME ZONE 'utc', 'YYYY-MM-DD') AS charged
    FROM video_jobs
    WHERE {due}
      -- Where the claim begins in the due index.
      AND (next_poll_at, job_id) >= (coalesce(timestamptz 'epoch' + @from::bigint * interval '1 microsecond', '-infinity'), '')
      AND coalesce(NOT @recall::boolean AND {unleased} OR {own_lease}, false)
      AND coalesce(job_id = ANY (@only::text[]), true)
      AND job_id <> ALL (@excluded::text[])
      -- A claim that a crash of the server undoes is only a lost lease: its
      -- commit need not wait for the disk.
      AND (SELECT set_config('synchronous_commit', 'off', true)) IS NOT NULL
      -- For the locks that the table's own triggers wait for.
      AND (SELECT set_config('lock_timeout', @lock_timeout::text, true)) IS NOT NULL
    ORDER BY next_poll_at
    -- No more than asked for, and no more than is left below the pace line.
    LIMIT (SELECT CASE WHEN @pace_line::bigint < 0 OR @recall::boolean THEN @limit::bigint
                  ELSE greatest(0, least(@limit::bigint, @pace_line::bigint - coalesce(
                      (SELECT reads FROM read_budget WHERE day = {today}), @pace_line::bigint)))
                  END)
    FOR NO KEY UPDATE SKIP LOCKED
)
