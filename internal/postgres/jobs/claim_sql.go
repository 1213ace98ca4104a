package jobs

// lockDaySQL takes the lock under which today's reads are counted, and makes the
// row where the day has none yet. The claim behind it in the same transaction
// sees the count with a snapshot of its own, taken once the lock is held: no run
// can slip between.
const lockDaySQL = `
INSERT INTO read_budget (day, reads)
SELECT (now() AT TIME ZONE 'utc')::date, 0
-- Other runs hold the lock for milliseconds; who holds it longer is an error.
WHERE (SELECT set_config('lock_timeout', '3s', true)) IS NOT NULL
-- A row that is there is locked, and left as it is.
ON CONFLICT (day) DO UPDATE SET reads = excluded.reads WHERE false`

// dueRowsSQL is the first part of a claim: the claimable rows, locked. Every rule
// of what is claimable is in here, under the lock and the limit. Otherwise rows
// that are not claimable would fill the batch.
const dueRowsSQL = `
WITH due AS MATERIALIZED (
    SELECT ctid AS row_at, job_id,
           -- Claimed by an earlier attempt whose answer was lost: its reads are
           -- counted already, on the day of that claim. That was when the lease
           -- began, as it ends and as long as it was made then.
           lease_id = $1::text::uuid AND leased_until > '-infinity' AS paid,
           to_char((CASE WHEN lease_id = $1::text::uuid AND leased_until > '-infinity'
                         THEN leased_until - interval '1 microsecond' * greatest($4::bigint, least(900000000,
                              $4::bigint * power(4, least(10, lost_leases))))
                         ELSE now() END) AT TIME ZONE 'utc', 'YYYY-MM-DD') AS charged
    FROM video_jobs
    WHERE state = 'pending'
      AND next_poll_at <= now()
      -- Where the walk begins. A comparison of rows: a plain one would make the
      -- planner take the two bounds for a narrow range, and sort.
      AND (next_poll_at, job_id) >= (coalesce(timestamptz 'epoch' + $2::bigint * interval '1 microsecond', '-infinity'), '')
      -- Not leased, or by a lease that ran out; one that ends later than any
      -- lease can was written before a clock jumped. For that the clock as it is
      -- decides: a claim may have written the longest lease while this
      -- transaction, whose now() is older, waited for the day's count. Or leased
      -- by this very claim; $3 asks for these alone. coalesce hides from the
      -- planner how many rows its statistics hold for leased.
      AND coalesce(
            NOT $3::boolean AND (
                leased_until < now()
                OR leased_until > clock_timestamp() + greatest(interval '15 minutes', $4::bigint * interval '1 microsecond'))
            OR (lease_id = $1::text::uuid AND leased_until > '-infinity'), false)
      -- Where $7 is not NULL, of these rows only; in any case none of $8.
      -- coalesce hides that the primary key could serve.
      AND coalesce(job_id = ANY ($7::text[]), true)
      AND job_id <> ALL ($8::text[])
      -- A claim lost in a crash is a lost lease, no more: its commit need not
      -- wait for the disk.
      AND (SELECT set_config('synchronous_commit', 'off', true)) IS NOT NULL
      -- No row's lock is waited for, but what a trigger of the table's locks may
      -- be held by another program.
      AND (SELECT set_config('lock_timeout', '` + rowWait + `', true)) IS NOT NULL
    ORDER BY next_poll_at
    -- No more than asked for, and no more than the day has left. A sub-select,
    -- so that the planner reckons with a part of the due rows, never with a
    -- number that it holds for all of them: it walks the index and does not sort.
    LIMIT (SELECT CASE WHEN $6::bigint < 0 OR $3::boolean THEN $5::bigint
                  ELSE greatest(0, least($5::bigint, $6::bigint - coalesce(
                      (SELECT reads FROM read_budget WHERE day = (now() AT TIME ZONE 'utc')::date), $6::bigint)))
                  END)
    FOR NO KEY UPDATE SKIP LOCKED
)`

// candidatesSQL returns the ids that a claim with the same parameters would try
// to lease.
const candidatesSQL = dueRowsSQL + `
SELECT job_id FROM due`

// claimSQL leases due rows and takes their reads from the daily quota. It
// returns a row per job, and the ids of all due rows where some of them were not
// updated.
const claimSQL = dueRowsSQL + `,
-- The lease, in columns that no index mentions. The arrays carry the rows'
-- places over whatever their number is held for, so that each is fetched by its
-- place and the locking select runs once.
claimed AS (
    UPDATE video_jobs AS j
    SET lease_id = $1::text::uuid,
        -- An earlier lease that was never cleared has been lost.
        lost_leases = j.lost_leases + (NOT d.paid AND j.leased_until > '-infinity')::integer,
        -- Each one lost lengthens the next fourfold, to fifteen minutes, and
        -- none is shorter than asked for.
        leased_until = now() + interval '1 microsecond' * greatest($4::bigint, least(900000000,
            $4::bigint * power(4, least(10, j.lost_leases + (NOT d.paid AND j.leased_until > '-infinity')::integer))))
    FROM unnest(ARRAY(SELECT row_at FROM due), ARRAY(SELECT paid FROM due), ARRAY(SELECT charged FROM due)) AS d (row_at, paid, charged)
    WHERE j.ctid = d.row_at
    RETURNING j.job_id, j.next_poll_at, d.paid, d.charged, j.sume_status, j.consecutive_errors,
              j.failing_since, j.not_found_answers, j.lost_leases, j.polls, j.created_at,
              -- What the row has after the table's own triggers.
              j.lease_id = $1::text::uuid AND j.leased_until > now() AND coalesce(j.state, '') = 'pending' AS kept
),
-- The reads, taken before they are made. Nobody else can have changed the row:
-- its lock is held since before this statement's snapshot.
charged AS (
    UPDATE read_budget AS b
    SET reads = b.reads + c.fresh
    FROM (SELECT count(*) AS fresh FROM claimed WHERE kept AND NOT paid) AS c
    WHERE $6::bigint >= 0 AND c.fresh > 0 AND b.day = (now() AT TIME ZONE 'utc')::date
)
-- The day stands in each row, and in one without a job where none is due.
-- Times are sent as numbers, which no setting of the server formats. Those of
-- over a century ago, -infinity among them, are NULL.
SELECT to_char(now() AT TIME ZONE 'utc', 'YYYY-MM-DD'),
       (extract(epoch FROM (now() AT TIME ZONE 'utc')::time) * 1000000)::bigint,
       coalesce((SELECT reads FROM read_budget WHERE day = (now() AT TIME ZONE 'utc')::date), 0), -- before this claim
       coalesce(c.job_id, ''), c.job_id IS NOT NULL AND c.kept, coalesce(c.paid, false), coalesce(c.charged, ''),
       CASE WHEN c.next_poll_at > now() - interval '100 years' THEN (extract(epoch FROM c.next_poll_at) * 1000000)::bigint END,
       CASE WHEN c.next_poll_at > now() - interval '100 years' THEN (extract(epoch FROM now() - c.next_poll_at) * 1000000)::bigint END,
       c.sume_status IS NOT NULL, coalesce(c.consecutive_errors, 0),
       CASE WHEN c.failing_since < now() THEN (extract(epoch FROM now() - greatest(c.failing_since, now() - interval '100 years')) * 1000000)::bigint ELSE 0 END,
       coalesce(c.not_found_answers, 0), coalesce(c.lost_leases, 0), coalesce(c.polls, 0),
       CASE WHEN c.created_at < now() THEN (extract(epoch FROM now() - greatest(c.created_at, now() - interval '100 years')) * 1000000)::bigint ELSE 0 END
FROM (SELECT 1) AS one (n)
LEFT JOIN claimed AS c ON true
UNION ALL
SELECT '', 0, 0, d.job_id, false, false, '', NULL, NULL, false, 0, 0, 0, 0, 0, 0
FROM due AS d
WHERE (SELECT count(*) FROM claimed) < (SELECT count(*) FROM due)`
