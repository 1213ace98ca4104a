package jobs

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"sumepoller/internal/poller"
	"sumepoller/internal/postgres"
)

// errTooMany is a claim that brought more rows than it asked for. They stay
// leased until the lease runs out.
var errTooMany = errors.New("more rows came back than were asked for")

// Claim implements poller.Queue. It asks for the rows of a lease that was asked
// for before first, and leases others only where there are none.
func (s *Store) Claim(ctx context.Context, r poller.ClaimRequest) (poller.Claimed, error) {
	again := s.claim.ask(r)
	var got poller.Claimed
	err := postgres.Retry(ctx, func() (err error) {
		got, err = s.take(ctx, r, again)
		again = true
		return err
	})
	if postgres.Transient(err) && postgres.MaybeOneRow(err) { // again and again: a trigger's, for one row
		var apart leased
		apart, err = s.leaseApart(ctx, claimQuery{ClaimRequest: r}, err)
		got = apart.Claimed
	}
	if err != nil {
		return poller.Claimed{}, fmt.Errorf("claim due jobs: %w", err)
	}
	got.Refused = s.claim.takeRefusals()
	return got, nil
}

func (s *Store) take(ctx context.Context, r poller.ClaimRequest, again bool) (poller.Claimed, error) {
	if again {
		got, err := s.leaseAround(ctx, claimQuery{ClaimRequest: r, recall: true})
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
	case got.refused, w.from != nil:
		return s.take(ctx, r, false) // behind the refused rows, or, where nothing is due above the bound, from the beginning
	}
	return got.Claimed, nil
}

// claimQuery is one claim statement's question.
type claimQuery struct {
	poller.ClaimRequest
	from   *int64   // microseconds since the epoch; nil: from the oldest due time
	recall bool     // only rows that the lease has already
	only   []string // only these rows; nil: all

	suspects int // rows left out since they may be what failed
}

// leased is what one claim statement brought.
type leased struct {
	poller.Claimed
	last    *int64   // the greatest due time among the jobs, microseconds since the epoch; nil: none within a century
	limit   int      // the most there could have been, as the daily quota goes
	missing []string // due rows that the statement did not lease
	refused bool     // some of the due rows were refused
	begun   bool     // the day's lock, where there is one, was had
}

// lease runs the claim in one round trip, which is one transaction.
func (s *Store) lease(ctx context.Context, q claimQuery) (leased, error) {
	got := leased{limit: q.Limit, begun: q.PaceLine < 0}
	batch := &pgx.Batch{}
	if q.PaceLine >= 0 {
		batch.Queue(lockDaySQL).Exec(func(pgconn.CommandTag) error { got.begun = true; return nil })
	}
	batch.Queue(claimSQL, s.claimArguments(q)...).
		Query(func(rows pgx.Rows) error { return got.scan(rows, q.PaceLine) })
	err := s.pool.SendBatch(ctx, batch).Close()
	if err == nil && len(got.Jobs) > q.Limit {
		err = errTooMany
	}
	return got, err
}

func (s *Store) claimArguments(q claimQuery) []any {
	return []any{uuid(q.Lease), q.from, q.recall, micros(q.For), int64(q.Limit), int64(q.PaceLine), q.only, s.claim.leftOut()}
}

// dueJob is a claimed job with its due time.
type dueJob struct {
	poller.Job
	due *int64
}

// scan reads the claim's rows and sorts them by due time. The count of the day's
// reads is set where the ceiling says that reads are counted.
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
		l.QuotaDate = charged
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
