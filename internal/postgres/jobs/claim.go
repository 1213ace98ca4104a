package jobs

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"sumepoller/internal/poller"
	"sumepoller/internal/postgres"
	"sumepoller/internal/postgres/statement"
)

var (
	lockDaySQL = statement.Read(files, "lock_day")
	claimSQL   = statement.Read(files, "claim")
)

// errTooMany is a claim that returned more rows than it asked for. They stay
// leased until the lease expires.
var errTooMany = errors.New("more rows came back than were asked for")

// Claim implements poller.Queue. If the lease was asked for before, Claim first
// returns the rows that it has. Only if there are none, it leases other rows.
func (s *Store) Claim(ctx context.Context, r poller.ClaimRequest) (poller.Claimed, error) {
	again := s.progress.ask(r)
	var got poller.Claimed
	err := postgres.Retry(ctx, func() (err error) {
		got, err = s.claim(ctx, r, again)
		again = true
		return err
	})
	if postgres.Transient(err) && postgres.MaybeOneRow(err) { // each time: perhaps a trigger, for one row
		var apart leased
		apart, err = s.leaseApart(ctx, claimQuery{ClaimRequest: r}, err)
		got = apart.Claimed
	}
	if err != nil {
		return poller.Claimed{}, fmt.Errorf("claim due jobs: %w", err)
	}
	got.Refused = s.progress.takeErrors()
	return got, nil
}

func (s *Store) claim(ctx context.Context, r poller.ClaimRequest, again bool) (poller.Claimed, error) {
	if again {
		got, err := s.leaseWritable(ctx, claimQuery{ClaimRequest: r, recall: true})
		if err != nil || len(got.Jobs) > 0 {
			return got.Claimed, err
		}
	}
	w := s.progress.begin(time.Now())
	got, err := s.leaseWritable(ctx, claimQuery{ClaimRequest: r, from: w.from})
	if err != nil {
		return poller.Claimed{}, err
	}
	s.progress.end(w, time.Now(), got.last, len(got.Jobs) == got.limit)
	switch {
	case len(got.Jobs) > 0 || got.limit == 0:
	case got.refused, w.from != nil:
		// Again: behind the refused rows or, if nothing is due above the bound, from
		// the oldest entry.
		return s.claim(ctx, r, false)
	}
	return got.Claimed, nil
}

// claimQuery is the question of one claim statement.
type claimQuery struct {
	poller.ClaimRequest
	from   *int64   // due time where it begins, microseconds since 1970; nil: at the oldest
	recall bool     // only rows that the lease has already
	only   []string // only these rows; nil: all

	suspects int // rows excluded because they may have caused an error
}

// leased is the result of one claim statement.
type leased struct {
	poller.Claimed
	last    *int64   // the jobs' greatest due time, microseconds since 1970; nil: none within a century
	limit   int      // the rows that it could return at most, with the daily quota
	missing []string // due rows that were not leased
	refused bool     // the table refused some of the due rows
	begun   bool     // the lock on the day's row, where it is needed, was taken
}

// lease runs the claim in one round trip, which is one transaction.
func (s *Store) lease(ctx context.Context, q claimQuery) (leased, error) {
	got := leased{limit: q.Limit, begun: q.PaceLine < 0}
	batch := &pgx.Batch{}
	if q.PaceLine >= 0 {
		batch.Queue(lockDaySQL).Exec(func(pgconn.CommandTag) error { got.begun = true; return nil })
	}
	batch.Queue(claimSQL, s.claimArgs(q)).
		Query(func(rows pgx.Rows) error { return got.scan(rows, q.PaceLine) })
	err := s.pool.SendBatch(ctx, batch).Close()
	if err == nil && len(got.Jobs) > q.Limit {
		err = errTooMany
	}
	return got, err
}

func (s *Store) claimArgs(q claimQuery) statement.Args {
	return statement.Args{
		"lease": leaseText(q.Lease), "lease_for": q.For.Microseconds(), "longest_lease": max(statement.LongestLease, q.For).Microseconds(),
		"from": q.from, "recall": q.recall, "only": q.only, "excluded": s.progress.excludedIDs(),
		"limit": int64(q.Limit), "pace_line": int64(q.PaceLine), "lock_timeout": rowWait,
	}
}

// dueJob is a claimed job with its due time.
type dueJob struct {
	poller.Job
	due *int64
}

// scan reads the claim's rows and sorts them by due time. It sets the day's reads
// if the pace line is not negative, that is if reads are counted.
func (l *leased) scan(rows pgx.Rows, paceLine int) error {
	var jobs []dueJob
	var j dueJob
	var date, charged string
	var elapsed, late, failing, age int64
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
		job.Late, job.Failing, job.Age = duration(late), duration(failing), duration(age)
		jobs = append(jobs, job)
		l.QuotaDate = charged
		if !paid {
			fresh++
		}
		return nil
	})
	if paceLine >= 0 {
		l.limit = max(0, min(l.limit, paceLine-before))
		l.Day.Reads = before + fresh
	}
	slices.SortStableFunc(jobs, func(a, b dueJob) int { return compareDue(a.due, b.due) })
	for _, job := range jobs {
		l.Jobs, l.last = append(l.Jobs, job.Job), job.due
	}
	l.missing = without(due, l.Jobs)
	return err
}

// compareDue orders due times; nil is the oldest.
func compareDue(a, b *int64) int {
	switch {
	case a != nil && b != nil:
		return cmp.Compare(*a, *b)
	case a != nil:
		return 1
	case b != nil:
		return -1
	}
	return 0
}

// without returns the ids that belong to none of the jobs, each once.
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
