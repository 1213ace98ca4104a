package jobs

// settleSQL writes a batch, announces the jobs it finished and returns, for each
// row that it wrote, the batch's position, counted from 1, the state, and whether
// the row has what was written. settleSkippingSQL does the same
// and leaves out rows that another program holds; it has to lock the rows apart,
// which costs a further record in the server's log for each of them.
const (
	settleSQL = `
WITH written AS (
    UPDATE video_jobs AS j
    SET ` + settleValues + `
    -- In the order of job_id, in which everything here locks.
    FROM (SELECT h.job_id, h.lease_id, h.state, h.delay, h.polled, h.status, h.error, h.not_found, h.final, h.refused, h.n
          FROM ` + settleBatch + `
          ORDER BY h.job_id) AS h
    WHERE ` + settleHeld + settleAnnounced

	settleSkippingSQL = `
WITH held AS MATERIALIZED (
    SELECT j.ctid AS row_at, h.state, h.delay, h.polled, h.status, h.error, h.not_found, h.final, h.refused, h.n
    FROM ` + settleBatch + `
    JOIN video_jobs AS j ON ` + settleHeld + `
    ORDER BY j.job_id
    FOR NO KEY UPDATE OF j SKIP LOCKED
),
written AS (
    UPDATE video_jobs AS j
    SET ` + settleValues + `
    FROM held AS h
    WHERE j.ctid = h.row_at` + settleAnnounced

	// The batch. The sub-selects hide from the planner how long the arrays are.
	settleBatch = `
          unnest((SELECT $1::text[]), (SELECT $2::text[]), (SELECT $3::text[]), (SELECT $4::bigint[]),
                 (SELECT $5::boolean[]), (SELECT $6::text[]), (SELECT $7::text[]), (SELECT $8::bigint[]), (SELECT $9::text[]),
                 (SELECT $10::boolean[]))
          WITH ORDINALITY AS h (job_id, lease_id, state, delay, polled, status, error, not_found, final, refused, n)`

	// The rows still held under their lease. coalesce hides that the partial
	// index could serve: each is found by its primary key. A row that another
	// program holds delays the statement by the timeout at most. A lease that was
	// cleared by a settlement which the row kept in part counts as held for the
	// error that follows: a trigger turned a finish back into pending, or made the
	// row due.
	settleHeld = `j.job_id = h.job_id
      AND j.lease_id = h.lease_id::uuid
      AND coalesce(j.state, '') = 'pending'
      AND (j.leased_until > '-infinity' OR h.refused AND (j.finished_at IS NOT NULL OR j.next_poll_at <= now()))
      AND (SELECT set_config('lock_timeout', $12::text, true)) IS NOT NULL`

	settleValues = `-- The lease is cleared and its id kept: the mark of a settled row.
        leased_until = '-infinity',
        lost_leases  = 0,
        state        = h.state,
        -- A finished row gets it too, in case a trigger turns it back into pending.
        next_poll_at = now() + h.delay * interval '1 microsecond',
        finished_at  = CASE WHEN h.state = 'pending' THEN NULL ELSE now() END,
        final_status = CASE WHEN h.state = 'pending' THEN j.final_status ELSE nullif(h.final, '')::jsonb END,
        -- What the read came to.
        polls          = j.polls + (h.polled AND j.leased_until > '-infinity')::integer,
        last_polled_at = CASE WHEN h.polled THEN now() ELSE j.last_polled_at END,
        -- A good answer ends a streak of errors; the last one's text stays.
        consecutive_errors = CASE WHEN h.error = '' THEN 0 ELSE j.consecutive_errors + 1 END,
        failing_since      = CASE WHEN h.error = '' THEN NULL ELSE coalesce(j.failing_since, now()) END,
        not_found_answers  = h.not_found,
        last_error         = coalesce(nullif(h.error, ''), j.last_error),
        -- Empty, not NULL, after a good answer that held no word: it tells that
        -- the job has answered.
        sume_status = coalesce(nullif(h.status, ''), j.sume_status, CASE WHEN h.error = '' THEN '' END)`

	settleAnnounced = `
    -- What the row has after the table's own triggers: the lease cleared, and a
    -- finished row not pending, a pending one not due.
    RETURNING j.job_id, j.state, h.n,
              j.leased_until = '-infinity'
              AND CASE WHEN h.state <> 'pending' THEN j.state <> 'pending'
                       WHEN h.refused AND j.finished_at IS NOT NULL THEN false
                       ELSE j.state <> 'pending' OR j.next_poll_at > now() OR h.delay <= 0 END AS kept
)
-- One announcement per finished job, in the transaction that finishes it.
SELECT n, coalesce(state, ''), coalesce(kept, false),
       CASE WHEN $11::boolean AND kept AND state <> 'pending'
            THEN pg_notify('video_jobs_finished', json_build_object('job_id', job_id, 'state', state)::text)::text END
FROM written`
)
