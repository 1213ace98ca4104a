package postgres

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"

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

// dueRowsSQL is the first part of a claim: the rows to be had, locked. Every
// rule of who is claimable stands in here, under the lock and the limit, or rows
// that may not be had would fill the batch for ever.
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
              j.lease_id = $1::text::uuid AND j.leased_until > now() AS kept
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
		got, err := s.lease(ctx, claimQuery{ClaimRequest: r, recall: true})
		if err != nil || len(got.Jobs) > 0 {
			return got.Claimed, err
		}
	}
	w := s.claim.begin(time.Now())
	got, err := s.leaseAround(ctx, claimQuery{ClaimRequest: r, from: w.from})
	if err != nil {
		return poller.Claimed{}, err
	}
	s.claim.end(w, time.Now(), got.last, len(got.Jobs) == got.limit)
	switch {
	case len(got.Jobs) > 0 || got.limit == 0:
	case len(got.Refused) > 0, w.from != nil: // others may be behind them; a sweep, where nothing is due above the bound
		next, err := s.take(ctx, r, false)
		next.Refused = append(got.Refused, next.Refused...)
		return next, err
	}
	return got.Claimed, nil
}

// claimQuery is one claim statement's question.
type claimQuery struct {
	poller.ClaimRequest
	from   *int64   // microseconds since the epoch; nil: from the oldest due time
	recall bool     // only rows that the lease has already
	only   []string // only these rows; nil: all
}

// leased is what one claim statement brought.
type leased struct {
	poller.Claimed
	last    *int64   // the greatest due time among the jobs, microseconds since the epoch; nil: none within a century
	limit   int      // the most there could have been, as the daily quota goes
	missing []string // due rows that the statement did not lease
}

// lease runs the claim in one round trip, which is one transaction.
func (s *Store) lease(ctx context.Context, q claimQuery) (leased, error) {
	got := leased{limit: q.Limit}
	batch := &pgx.Batch{}
	if q.Ceiling >= 0 {
		batch.Queue(lockDaySQL)
	}
	batch.Queue(claimSQL, s.claimArguments(q)...).
		Query(func(rows pgx.Rows) error { return got.scan(rows, q.Ceiling) })
	err := s.pool.SendBatch(ctx, batch).Close()
	if err == nil && len(got.Jobs) > q.Limit {
		err = errTooMany
	}
	return got, err
}

func (s *Store) claimArguments(q claimQuery) []any {
	return []any{uuid(q.Lease), q.from, q.recall, micros(q.For), int64(q.Limit), int64(q.Ceiling), q.only, s.claim.leftOut()}
}

// dueJob is a claimed job with its due time.
type dueJob struct {
	poller.Job
	due *int64
}

// scan reads the claim's rows and puts them in the order of their due times. The
// count of the day's reads is told where the ceiling says that it is kept.
func (l *leased) scan(rows pgx.Rows, ceiling int) error {
	var jobs []dueJob
	var j dueJob
	var date, charged string
	var elapsed, failing, age int64
	var late *int64
	var kept, paid bool
	var reads, before, fresh int
	var due []string
	_, err := pgx.ForEachRow(rows, []any{
		&date, &elapsed, &reads, &j.ID, &kept, &paid, &charged, &j.due, &late,
		&j.Answered, &j.ConsecutiveErrors, &failing, &j.NotFound, &j.LostLeases, &j.Polls, &age,
	}, func() error {
		if date != "" {
			l.Day.Date, l.Day.Elapsed, before = date, duration(elapsed), reads
		}
		if !kept {
			if j.ID != "" {
				due = append(due, j.ID)
			}
			return nil
		}
		job := j
		job.Late, job.Failing, job.Age = centuryOr(late), duration(failing), duration(age)
		jobs = append(jobs, job)
		l.Charged = charged
		if !paid {
			fresh++
		}
		return nil
	})
	if ceiling >= 0 {
		l.limit = max(0, min(l.limit, ceiling-before))
		l.Day.Reads = before + fresh
	}
	slices.SortStableFunc(jobs, func(a, b dueJob) int { return compareDue(a.due, b.due) })
	for _, job := range jobs {
		l.Jobs, l.last = append(l.Jobs, job.Job), job.due
	}
	l.missing = without(due, l.Jobs)
	return err
}

// centuryOr returns how late a row is; NULL stands for more than a century.
func centuryOr(late *int64) time.Duration {
	if late == nil {
		return 100 * 365 * 24 * time.Hour
	}
	return duration(*late)
}

// compareDue orders due times; nil is the oldest.
func compareDue(a, b *int64) int {
	switch {
	case a == nil && b == nil:
		return 0
	case a == nil:
		return -1
	case b == nil:
		return 1
	case *a < *b:
		return -1
	case *a > *b:
		return 1
	}
	return 0
}

// without returns the ids that are none of the jobs', each once.
func without(due []string, jobs []poller.Job) []string {
	if len(due) == 0 {
		return nil
	}
	leased := make(map[string]bool, len(jobs))
	for _, j := range jobs {
		leased[j.ID] = true
	}
	slices.Sort(due)
	return slices.DeleteFunc(slices.Compact(due), func(id string) bool { return leased[id] })
}
