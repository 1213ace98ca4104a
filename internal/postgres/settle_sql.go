package postgres

// settleSQL writes a batch, announces the jobs it finished and returns the
// batch's positions it wrote, counted from 1. settleSkippingSQL does the same
// and leaves out rows that another program holds; it has to lock the rows apart,
// which costs a further record in the server's log for each of them.
const (
	settleSQL = `
WITH written AS (
    UPDATE video_jobs AS j
    SET ` + settleValues + `
    -- In the order of job_id, in which everything here locks.
    FROM (SELECT h.job_id, h.lease_id, h.state, h.delay, h.polled, h.status, h.error, h.final, h.n
          FROM ` + settleBatch + `
          ORDER BY h.job_id) AS h
    WHERE ` + settleHeld + settleAnnounced

	settleSkippingSQL = `
WITH held AS MATERIALIZED (
    SELECT j.ctid AS row_at, h.state, h.delay, h.polled, h.status, h.error, h.final, h.n
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
                 (SELECT $5::boolean[]), (SELECT $6::text[]), (SELECT $7::text[]), (SELECT $8::text[]))
          WITH ORDINALITY AS h (job_id, lease_id, state, delay, polled, status, error, final, n)`

	// The rows still held under their lease. coalesce hides that the partial
	// index could serve: each is found by its primary key. A row that another
	// program holds delays the statement by the timeout at most.
	settleHeld = `j.job_id = h.job_id
      AND j.lease_id = h.lease_id::uuid
      AND coalesce(j.state, '') = 'pending'
      AND j.leased_until > '-infinity'
      AND (SELECT set_config('lock_timeout', $9::text, true)) IS NOT NULL`

	settleValues = `-- The lease is cleared and its id kept: the mark of a settled row.
        leased_until = '-infinity',
        lost_leases  = 0,
        state        = h.state,
        next_poll_at = CASE WHEN h.state = 'pending' THEN now() + h.delay * interval '1 microsecond' ELSE j.next_poll_at END,
        finished_at  = CASE WHEN h.state = 'pending' THEN j.finished_at ELSE now() END,
        final_status = CASE WHEN h.state = 'pending' THEN j.final_status ELSE nullif(h.final, '')::jsonb END,
        -- What the read came to.
        polls          = j.polls + h.polled::integer,
        last_polled_at = CASE WHEN h.polled THEN now() ELSE j.last_polled_at END,
        -- A good answer ends a streak of errors; the last one's text stays.
        consecutive_errors = CASE WHEN h.error = '' THEN 0 ELSE j.consecutive_errors + 1 END,
        failing_since      = CASE WHEN h.error = '' THEN NULL ELSE coalesce(j.failing_since, now()) END,
        last_error         = coalesce(nullif(h.error, ''), j.last_error),
        -- Empty, not NULL, after a good answer that held no word: it tells that
        -- the job has answered.
        sume_status = coalesce(nullif(h.status, ''), j.sume_status, CASE WHEN h.error = '' THEN '' END)`

	settleAnnounced = `
    RETURNING j.job_id, j.state, h.n
),
-- One announcement per finished job, in the transaction that finishes it.
announced AS MATERIALIZED (
    SELECT n, pg_notify('video_jobs_finished', json_build_object('job_id', job_id, 'state', state)::text)
    FROM written
    WHERE state <> 'pending'
)
SELECT n FROM written WHERE state = 'pending'
UNION ALL
SELECT n FROM announced`
)
