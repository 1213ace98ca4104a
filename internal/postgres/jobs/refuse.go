package jobs

import (
	"context"
	"errors"

	"github.com/jackc/pgx/v5/pgconn"

	"sumepoller/internal/poller"
	"sumepoller/internal/postgres"
)

// refusalOf describes an error that refused accepts.
func refusalOf(jobID string, err error, write string) poller.WriteError {
	r := poller.WriteError{JobID: jobID, Write: write}
	var pg *pgconn.PgError
	if !errors.As(err, &pg) {
		return r
	}
	r.SQLState = pg.Code
	switch function := postgres.TriggerFunction(pg); {
	case pg.ConstraintName != "":
		r.Object = "constraint " + cut(pg.ConstraintName)
	case function != "":
		r.Object = "function " + cut(function)
	case pg.ColumnName != "":
		r.Object = "column " + cut(pg.ColumnName)
	}
	return r
}

// rewritersSQL names what can change or drop an UPDATE of a row without an
// error: BEFORE UPDATE triggers for each row (type bits 1, 2 and 16), and rules.
const rewritersSQL = `
SELECT coalesce(string_agg(kind || ' ' || name, ', ' ORDER BY kind, name), '')
FROM (SELECT 'trigger' AS kind, tgname::text AS name
      FROM pg_trigger
      WHERE tgrelid = 'video_jobs'::regclass AND NOT tgisinternal AND tgenabled <> 'D' AND tgtype & 19 = 19
      UNION ALL
      SELECT 'rule', rulename::text FROM pg_rewrite WHERE ev_class = 'video_jobs'::regclass AND ev_type = '2'
     ) AS rewriters`

// notKept describes a write that raised no error and yet is not in the row.
func (s *Store) notKept(ctx context.Context, jobID, write string) poller.WriteError {
	r := poller.WriteError{JobID: jobID, Write: write}
	var names string
	if s.pool.QueryRow(ctx, rewritersSQL).Scan(&names) == nil {
		r.Object = cut(names)
	}
	return r
}

// explain completes the result of a write that raised no error and that the row
// does not have. No later claim of the run asks for that row.
func (s *Store) explain(ctx context.Context, r *poller.Result, jobID, write string) {
	if r.Outcome != poller.Refused || r.Error != nil {
		return
	}
	refusal := s.notKept(ctx, jobID, write)
	r.Error = &refusal
	s.claim.leaveOut(jobID)
}

// leaseAround claims, and where the table refuses that for some of the rows,
// leases the others. The refused ones are left out of all claims to come.
func (s *Store) leaseAround(ctx context.Context, q claimQuery) (leased, error) {
	got, err := s.lease(ctx, q)
	if postgres.Refused(err) || got.begun && postgres.MaybeOneRow(err) && !postgres.Transient(err) {
		got, err = s.leaseApart(ctx, q, err)
	}
	if err != nil {
		return got, err
	}
	for _, id := range got.missing {
		if err := s.leaseMissing(ctx, q, id, &got); err != nil {
			return got, err
		}
	}
	return got, nil
}

// leaseApart finds the rows that make a claim fail with the error cause. An error
// of the infrastructure's classes is theirs only where others are leased beside
// or behind them, but for a lock: claims wait for none except a trigger's.
func (s *Store) leaseApart(ctx context.Context, q claimQuery, cause error) (leased, error) {
	none := q
	none.Limit = 0
	got, err := s.lease(ctx, none)
	if err != nil {
		return got, err // without any row: the statement itself is refused
	}
	got.limit = q.Limit
	rows, err := s.pool.Query(ctx, candidatesSQL, s.claimArguments(q)...)
	if err != nil {
		return got, err
	}
	if q.only, err = collectIDs(rows); err != nil {
		return got, err
	}
	var refusals []poller.WriteError
	if err := s.leaseHalves(ctx, q, &got, &refusals); err != nil {
		return got, err
	}
	if len(got.Jobs) == 0 && !postgres.Refused(cause) && postgres.SQLState(cause) != postgres.LockTimeout {
		if got, err = s.leaseBehind(ctx, q, refusals); err != nil || len(got.Jobs) == 0 {
			return got, cause
		}
	}
	for _, r := range refusals {
		got.refused = true
		s.claim.refuse(r)
	}
	return got, nil
}

// behindMost bounds how many rows are left out on suspicion: where so many fail,
// it is not for them.
const behindMost = 64

// leaseBehind claims with the refused rows left out, which it undoes where that
// brings nothing.
func (s *Store) leaseBehind(ctx context.Context, q claimQuery, refusals []poller.WriteError) (leased, error) {
	q.only, q.suspects = nil, q.suspects+len(refusals)
	if q.suspects >= behindMost {
		return leased{}, nil
	}
	for _, r := range refusals {
		s.claim.leaveOut(r.JobID)
	}
	got, err := s.leaseAround(ctx, q)
	if err != nil || len(got.Jobs) == 0 {
		for _, r := range refusals {
			s.claim.takeBack(r.JobID)
		}
	}
	return got, err
}

// leaseHalves leases the rows of q.only. A part that the table refuses is
// halved until it is one row.
func (s *Store) leaseHalves(ctx context.Context, q claimQuery, into *leased, refusals *[]poller.WriteError) error {
	if len(q.only) == 0 {
		return nil
	}
	part, err := s.lease(ctx, q)
	switch {
	case err == nil:
		into.add(part)
		return nil
	case !postgres.Refused(err) && !postgres.MaybeOneRow(err):
		return err
	case len(q.only) == 1:
		*refusals = append(*refusals, refusalOf(q.only[0], err, poller.WriteClaim))
		return nil
	}
	first, second := q, q
	first.only, second.only = q.only[:len(q.only)/2], q.only[len(q.only)/2:]
	if err := s.leaseHalves(ctx, first, into, refusals); err != nil {
		return err
	}
	return s.leaseHalves(ctx, second, into, refusals)
}

// leaseMissing claims one row that was due and got no lease. The row may have
// changed between the statement's snapshot and its lock, and then the claim
// succeeds now or finds nothing due. Else the table does not keep the lease.
func (s *Store) leaseMissing(ctx context.Context, q claimQuery, id string, into *leased) error {
	q.only, q.Limit = []string{id}, 1
	got, err := s.lease(ctx, q)
	switch {
	case postgres.Refused(err):
		s.claim.refuse(refusalOf(id, err, poller.WriteClaim))
	case err != nil:
		return err
	case len(got.missing) == 0:
		into.add(got)
		if len(got.Jobs) > 0 || !s.turned(ctx, q.Lease, id) {
			return nil
		}
		s.claim.refuse(s.notKept(ctx, id, poller.WriteClaim))
	default:
		s.claim.refuse(s.notKept(ctx, id, poller.WriteClaim))
	}
	into.refused = true
	return nil
}

// turned reports whether a row has a claim's lease and is not pending: a trigger
// changed its state when it was leased.
func (s *Store) turned(ctx context.Context, lease poller.LeaseID, id string) (yes bool) {
	const query = `SELECT coalesce(state, '') <> 'pending' FROM video_jobs WHERE job_id = $1::text AND lease_id = $2::text::uuid`
	return s.pool.QueryRow(ctx, query, id, uuid(lease)).Scan(&yes) == nil && yes
}

// add takes over what a further statement of the same claim brought.
func (l *leased) add(part leased) {
	l.Jobs = append(l.Jobs, part.Jobs...)
	l.missing = append(l.missing, part.missing...)
	l.Day = part.Day
	if len(part.Jobs) > 0 {
		l.QuotaDate = part.QuotaDate
		if compareDue(part.last, l.last) > 0 {
			l.last = part.last
		}
	}
}
