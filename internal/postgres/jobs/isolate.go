package jobs

import (
	"context"

	"github.com/jackc/pgx/v5"

	"sumepoller/internal/poller"
	"sumepoller/internal/postgres"
	"sumepoller/internal/postgres/statement"
)

var (
	candidatesSQL  = statement.Read(files, "claim_candidates")
	leftPendingSQL = statement.Read(files, "left_pending")
)

// leaseWritable claims. If the table refuses that for some of the rows, it leases
// the others and excludes the refused ones from further claims.
func (s *Store) leaseWritable(ctx context.Context, q claimQuery) (leased, error) {
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

// leaseApart finds the rows that make a claim fail with the error cause. If
// that is an error of the infrastructure's classes, the rows count as the cause
// only if other rows can be leased. They are always the cause of a lock
// timeout: a claim waits for no lock but a trigger's.
func (s *Store) leaseApart(ctx context.Context, q claimQuery, cause error) (leased, error) {
	none := q
	none.Limit = 0
	got, err := s.lease(ctx, none)
	if err != nil {
		return got, err // even without rows: the statement itself is refused
	}
	got.limit = q.Limit
	rows, err := s.pool.Query(ctx, candidatesSQL, s.claimArgs(q))
	if err != nil {
		return got, err
	}
	if q.only, err = pgx.CollectRows(rows, pgx.RowTo[string]); err != nil {
		return got, err
	}
	var refused []poller.WriteError
	if err := s.leaseHalves(ctx, q, &got, &refused); err != nil {
		return got, err
	}
	if len(got.Jobs) == 0 && !postgres.Refused(cause) && postgres.SQLState(cause) != postgres.LockTimeout {
		if got, err = s.leaseBehind(ctx, q, refused); err != nil || len(got.Jobs) == 0 {
			return got, cause
		}
	}
	for _, e := range refused {
		got.refused = true
		s.progress.addError(e)
	}
	return got, nil
}

// maxSuspects bounds the rows that are excluded on suspicion. If more rows
// fail, the rows are not the cause.
const maxSuspects = 64

// leaseBehind claims without the refused rows. If that leases nothing, it includes
// them again.
func (s *Store) leaseBehind(ctx context.Context, q claimQuery, refused []poller.WriteError) (leased, error) {
	q.only, q.suspects = nil, q.suspects+len(refused)
	if q.suspects >= maxSuspects {
		return leased{}, nil
	}
	for _, e := range refused {
		s.progress.exclude(e.JobID)
	}
	got, err := s.leaseWritable(ctx, q)
	if err != nil || len(got.Jobs) == 0 {
		for _, e := range refused {
			s.progress.include(e.JobID)
		}
	}
	return got, err
}

// leaseHalves leases the rows of q.only. It halves a part that the table refuses
// until the part is one row.
func (s *Store) leaseHalves(ctx context.Context, q claimQuery, into *leased, refused *[]poller.WriteError) error {
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
		*refused = append(*refused, writeErrorOf(q.only[0], err, poller.WriteClaim))
		return nil
	}
	first, second := q, q
	first.only, second.only = q.only[:len(q.only)/2], q.only[len(q.only)/2:]
	if err := s.leaseHalves(ctx, first, into, refused); err != nil {
		return err
	}
	return s.leaseHalves(ctx, second, into, refused)
}

// leaseMissing claims one row that was due and was not leased. If the row changed
// between the statement's snapshot and its lock, this claim leases it or finds
// that it is not due. Otherwise the table does not keep the lease.
func (s *Store) leaseMissing(ctx context.Context, q claimQuery, id string, into *leased) error {
	q.only, q.Limit = []string{id}, 1
	got, err := s.lease(ctx, q)
	switch {
	case postgres.Refused(err):
		s.progress.addError(writeErrorOf(id, err, poller.WriteClaim))
	case err != nil:
		return err
	default:
		if len(got.missing) == 0 {
			into.add(got)
			if len(got.Jobs) > 0 || !s.leftPending(ctx, q.Lease, id) {
				return nil
			}
		}
		s.progress.addError(s.notKept(ctx, id, poller.WriteClaim))
	}
	into.refused = true
	return nil
}

// leftPending reports whether a trigger changed the state of a row when the row
// was leased.
func (s *Store) leftPending(ctx context.Context, lease poller.LeaseID, id string) (yes bool) {
	args := statement.Args{"job_id": id, "lease": leaseText(lease)}
	return s.pool.QueryRow(ctx, leftPendingSQL, args).Scan(&yes) == nil && yes
}

// add adds the result of another statement of the same claim.
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
