package postgres

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgtype"

	"sumepoller/internal/poller"
)

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

// claimSQL leases due rows and takes their reads from the day's allowance.
const claimSQL = `
-- The rows to be had. Every rule of who is due stands in here, under the lock
-- and the limit, or rows that may not be had would fill the batch for ever.
WITH due AS MATERIALIZED (
    SELECT ctid AS row_at,
           -- Claimed by an earlier attempt whose answer was lost: paid already.
           lease_id = $1::text::uuid AND leased_until > '-infinity' AS paid
    FROM video_jobs
    WHERE state = 'pending'
      AND next_poll_at <= now()
      -- Where the walk begins. A comparison of rows: a plain one would make the
      -- planner take the two bounds for a narrow range, and sort.
      AND (next_poll_at, job_id) >= ($2::timestamptz, '')
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
      -- A claim lost in a crash is a lost lease, no more: its commit need not
      -- wait for the disk.
      AND (SELECT set_config('synchronous_commit', 'off', true)) IS NOT NULL
    ORDER BY next_poll_at
    -- No more than asked for, and no more than the day has left. A sub-select,
    -- so that the planner reckons with a part of the due rows, never with a
    -- number that it holds for all of them: it walks the index and does not sort.
    LIMIT (SELECT CASE WHEN $6::bigint < 0 OR $3::boolean THEN $5::bigint
                  ELSE greatest(0, least($5::bigint, $6::bigint - coalesce(
                      (SELECT reads FROM read_budget WHERE day = (now() AT TIME ZONE 'utc')::date), $6::bigint)))
                  END)
    FOR NO KEY UPDATE SKIP LOCKED
),
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
    FROM unnest(ARRAY(SELECT row_at FROM due), ARRAY(SELECT paid FROM due)) AS d (row_at, paid)
    WHERE j.ctid = d.row_at
    RETURNING j.job_id, j.next_poll_at, d.paid, j.sume_status, j.consecutive_errors,
              j.failing_since, j.last_error, j.lost_leases
),
-- The reads, taken before they are made. Nobody else can have changed the row:
-- its lock is held since before this statement's snapshot.
charged AS (
    UPDATE read_budget AS b
    SET reads = b.reads + c.fresh
    FROM (SELECT count(*) AS fresh FROM claimed WHERE NOT paid) AS c
    WHERE $6::bigint >= 0 AND c.fresh > 0 AND b.day = (now() AT TIME ZONE 'utc')::date
)
-- The day stands in each row, and in one without a job where none is due.
SELECT (now() AT TIME ZONE 'utc')::date::text,
       (extract(epoch FROM (now() AT TIME ZONE 'utc')::time) * 1000000)::bigint,
       coalesce(c.job_id, ''), c.next_poll_at,
       -- A due time of -infinity cannot be subtracted.
       coalesce((extract(epoch FROM now() - greatest(c.next_poll_at, now() - interval '100 years')) * 1000000)::bigint, 0),
       coalesce(c.paid, false), c.sume_status IS NOT NULL, coalesce(c.consecutive_errors, 0),
       coalesce((extract(epoch FROM greatest(now() - c.failing_since, interval '0')) * 1000000)::bigint, 0),
       coalesce(c.last_error, ''), coalesce(c.lost_leases, 0),
       -- The count as it was before this claim.
       coalesce((SELECT reads FROM read_budget WHERE day = (now() AT TIME ZONE 'utc')::date), 0)
FROM (SELECT 1) AS one (n)
LEFT JOIN claimed AS c ON true`

// errTooMany is a claim that brought more rows than it asked for. They stay
// leased until the lease runs out.
var errTooMany = errors.New("more rows came back than were asked for")

// Claim implements poller.Queue. It asks for the rows of a lease that was asked
// for before first, and leases others only where there are none.
func (s *Store) Claim(ctx context.Context, r poller.ClaimRequest) (poller.Claimed, error) {
	again := s.claim.ask(r)
	var got poller.Claimed
	err := retry(ctx, func() (err error) {
		got, err = s.take(ctx, r, again)
		again = true
		return err
	})
	if err != nil {
		return poller.Claimed{}, fmt.Errorf("claim due jobs: %w", err)
	}
	return got, nil
}

func (s *Store) take(ctx context.Context, r poller.ClaimRequest, again bool) (poller.Claimed, error) {
	if again {
		got, err := s.lease(ctx, r, pgtype.Timestamptz{}, true)
		if err != nil || len(got.Jobs) > 0 {
			return got.Claimed, err
		}
	}
	w := s.claim.begin(time.Now())
	got, err := s.lease(ctx, r, w.from, false)
	if err != nil {
		return poller.Claimed{}, err
	}
	s.claim.end(w, time.Now(), got.last, len(got.Jobs) == got.limit)
	if len(got.Jobs) == 0 && got.limit > 0 && w.from.Valid {
		return s.take(ctx, r, false) // a sweep: nothing is due above the bound
	}
	return got.Claimed, nil
}

// leased is what one claim statement brought.
type leased struct {
	poller.Claimed
	last  pgtype.Timestamptz // the greatest due time among the jobs
	limit int                // the most there could have been, as the day's allowance goes
}

// lease runs the claim in one round trip, which is one transaction.
func (s *Store) lease(ctx context.Context, r poller.ClaimRequest, from pgtype.Timestamptz, recall bool) (leased, error) {
	got := leased{limit: r.Limit}
	batch := &pgx.Batch{}
	if r.Ceiling >= 0 {
		batch.Queue(lockDaySQL)
	}
	if !from.Valid {
		from = pgtype.Timestamptz{InfinityModifier: pgtype.NegativeInfinity, Valid: true}
	}
	batch.Queue(claimSQL, uuid(r.Lease), from, recall, micros(r.For), int64(r.Limit), int64(r.Ceiling)).
		Query(func(rows pgx.Rows) error { return got.scan(rows, r.Ceiling) })
	err := s.pool.SendBatch(ctx, batch).Close()
	if err == nil && len(got.Jobs) > r.Limit {
		err = errTooMany
	}
	return got, err
}

// scan reads the claim's rows and puts them in the order of their due times. The
// count of the day's reads is told where the ceiling says that it is kept.
func (l *leased) scan(rows pgx.Rows, ceiling int) error {
	type dueJob struct {
		poller.Job
		due pgtype.Timestamptz
	}
	var jobs []dueJob
	var j dueJob
	var elapsed, late, failing int64
	var paid bool
	var before, fresh int
	_, err := pgx.ForEachRow(rows, []any{
		&l.Day.Date, &elapsed, &j.ID, &j.due, &late, &paid,
		&j.Answered, &j.ConsecutiveErrors, &failing, &j.LastError, &j.LostLeases, &before,
	}, func() error {
		l.Day.Elapsed = duration(elapsed)
		if !j.due.Valid {
			return nil
		}
		j.Late, j.Failing = duration(late), duration(failing)
		jobs = append(jobs, j)
		if !paid {
			fresh++
		}
		return nil
	})
	if ceiling >= 0 {
		l.limit = max(0, min(l.limit, ceiling-before))
		l.Day.Reads = before + fresh
	}
	slices.SortStableFunc(jobs, func(a, b dueJob) int {
		switch {
		case later(b.due, a.due):
			return -1
		case later(a.due, b.due):
			return 1
		}
		return 0
	})
	for _, job := range jobs {
		l.Jobs, l.last = append(l.Jobs, job.Job), job.due
	}
	return err
}
