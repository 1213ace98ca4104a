package model

import (
	"context"
	"errors"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"sumepoller/internal/poller"
)

// Claim implements poller.Queue.
func (p *plain) Claim(ctx context.Context, r poller.ClaimRequest) (got poller.Claimed, err error) {
	for {
		tried := len(p.leftOut)
		part, err := p.claim(ctx, r)
		part.Refused = append(got.Refused, part.Refused...)
		if got = part; err != nil || len(got.Jobs) > 0 || len(p.leftOut) == tried {
			return got, err
		}
	}
}

// claim tries to lease the rows that may be had. It brings none of them where
// the table refuses all.
func (p *plain) claim(ctx context.Context, r poller.ClaimRequest) (got poller.Claimed, err error) {
	err = p.tx(ctx, func(tx pgx.Tx) error {
		if err := today(ctx, tx, &got.Day); err != nil {
			return err
		}
		found, err := list(ctx, tx, plainFound, r.Lease, r.Limit, append([]string{}, p.leftOut...))
		if err != nil {
			return err
		}
		fresh := len(found) == 0
		if fresh {
			room := r.Limit
			if r.PaceLine >= 0 {
				room = max(0, min(room, r.PaceLine-got.Day.Reads))
			}
			if found, err = list(ctx, tx, p.sql(plainDue), room, append([]string{}, p.leftOut...)); err != nil {
				return err
			}
		}
		for _, id := range found {
			charged := got.Day.Date
			if !fresh {
				if err := tx.QueryRow(ctx, plainCharged, id, r.Lease, r.For.Seconds()).Scan(&charged); err != nil {
					return err
				}
			}
			job, refusal, err := p.lease(ctx, tx, id, r)
			if err != nil {
				return err
			}
			if refusal == nil {
				got.Jobs, got.QuotaDate = append(got.Jobs, job), charged
			} else {
				got.Refused = append(got.Refused, *refusal)
				p.leaveOut(id)
			}
			if r.PaceLine >= 0 && (fresh || p.fault == chargesAgain) && (refusal == nil || p.fault == chargesAll) {
				got.Day.Reads++
			}
		}
		_, err = tx.Exec(ctx, `UPDATE read_budget SET reads = $1 WHERE day::text = $2`, got.Day.Reads, got.Day.Date)
		return err
	})
	return got, err
}

func (p *plain) lease(ctx context.Context, tx pgx.Tx, id string, r poller.ClaimRequest) (poller.Job, *poller.WriteError, error) {
	job := poller.Job{ID: id}
	var failing, late float64
	refusal, err := p.try(ctx, tx, id, poller.WriteClaim, func(tx pgx.Tx) (kept bool, err error) {
		err = tx.QueryRow(ctx, plainLease, id, r.Lease, r.For.Seconds()).Scan(
			&kept, &job.Answered, &job.ConsecutiveErrors, &job.NotFound, &job.LostLeases, &job.Polls, &failing, &late)
		return kept, err
	})
	if refusal != nil && p.fault == failsClaim {
		err = refusal
	}
	job.Failing, job.Late = seconds(failing), seconds(late)
	return job, refusal, err
}

// Settle implements poller.Queue.
func (p *plain) Settle(ctx context.Context, batch []poller.Settlement) ([]poller.Result, error) {
	results := make([]poller.Result, len(batch))
	for i, s := range batch {
		result, err := p.settle(ctx, s)
		if r := result.Error; r != nil && r.SQLState == "22023" && s.Final != nil {
			s.Final = nil
			if result, err = p.settle(ctx, s); result.Error == nil {
				r.Write, result.Error = poller.WriteFinalStatus, r
			}
		}
		if err != nil {
			return nil, err
		}
		if result.Outcome == poller.Refused {
			p.leaveOut(s.JobID)
		}
		if result.Outcome == poller.Refused && p.fault == losesRefusal {
			result = poller.Result{Outcome: poller.LeaseLost}
		}
		results[i] = result
	}
	return results, nil
}

func (p *plain) settle(ctx context.Context, s poller.Settlement) (result poller.Result, err error) {
	err = p.tx(ctx, func(tx pgx.Tx) (err error) {
		refused := s.Class == poller.WriteRefused
		result, err = p.change(ctx, tx, s.JobID, s.Lease, s.State, refused, poller.WriteSettle, func(tx pgx.Tx) (kept bool, err error) {
			err = tx.QueryRow(ctx, plainSettle, s.JobID, s.State, s.Delay.Seconds(), s.Polled, s.Status, s.Error, string(s.Final), s.NotFound).Scan(&kept)
			if err != nil || s.State == "" || p.fault == silent || !kept && p.fault != shoutsEarly {
				return kept, err
			}
			const announce = `SELECT pg_notify('video_jobs_finished', json_build_object('job_id', $1::text, 'state', $2::text)::text)`
			_, err = tx.Exec(ctx, announce, s.JobID, s.State)
			return kept, err
		})
		return err
	})
	return result, err
}

// Release implements poller.Queue.
func (p *plain) Release(ctx context.Context, date string, rows []poller.Release) ([]poller.Result, error) {
	results := make([]poller.Result, len(rows))
	for i, r := range rows {
		err := p.tx(ctx, func(tx pgx.Tx) (err error) {
			sound := plain{pool: p.pool}
			results[i], err = sound.change(ctx, tx, r.JobID, r.Lease, "", false, poller.WriteRelease, func(tx pgx.Tx) (kept bool, err error) {
				if err := tx.QueryRow(ctx, p.sql(plainRelease), r.JobID, r.Unread).Scan(&kept); err != nil || !kept || !r.Unread {
					return kept, err
				}
				if p.fault == refundsToday {
					date = ""
				}
				const refund = `UPDATE read_budget SET reads = greatest(0, reads - 1)
					WHERE day = coalesce(nullif($1, '')::date, (now() AT TIME ZONE 'utc')::date)`
				_, err = tx.Exec(ctx, refund, date)
				return true, err
			})
			return err
		})
		if err != nil {
			return nil, err
		}
		if results[i].Outcome == poller.Refused {
			p.leaveOut(r.JobID)
		}
	}
	return results, nil
}

// change does what is to be done where the row is held under the lease, else
// reports what became of it.
func (p *plain) change(
	ctx context.Context, tx pgx.Tx, id string, lease poller.LeaseID, state string, refused bool, write string, do func(pgx.Tx) (bool, error),
) (result poller.Result, err error) {
	err = tx.QueryRow(ctx, p.sql(plainHeld), id, lease, refused).Scan(&id)
	if err == nil {
		result.State = state
		if result.Error, err = p.try(ctx, tx, id, write, do); result.Error != nil {
			result.Outcome, result.State = poller.Refused, ""
		}
		return result, err
	}
	if !errors.Is(err, pgx.ErrNoRows) {
		return result, err
	}
	if state == "" {
		state = poller.StatePending
	}
	var has string
	result.Outcome = poller.Missing
	err = tx.QueryRow(ctx, plainOutcome, id, lease, state, refused).Scan(&result.Outcome, &has)
	switch {
	case result.Outcome == poller.Refused:
		result.Error = &poller.WriteError{JobID: id, Write: write, Object: "trigger refuse"}
	case result.Outcome == poller.Written && has != poller.StatePending:
		result.State = has
	}
	if errors.Is(err, pgx.ErrNoRows) {
		err = nil
	}
	return result, err
}

// try writes one row under a savepoint, and returns a refusal where the table
// does not take it or the row does not keep it.
func (p *plain) try(ctx context.Context, tx pgx.Tx, id, write string, do func(pgx.Tx) (bool, error)) (*poller.WriteError, error) {
	var kept bool
	err := pgx.BeginFunc(ctx, tx, func(tx pgx.Tx) (err error) {
		kept, err = do(tx)
		return err
	})
	refusal := &poller.WriteError{JobID: id, Write: write, Object: "trigger refuse"}
	var raised *pgconn.PgError
	switch {
	case errors.As(err, &raised):
		refusal.SQLState = raised.Code
	case err != nil && !errors.Is(err, pgx.ErrNoRows):
		return nil, err
	case kept || p.fault == trustsWrites:
		return nil, nil
	}
	return refusal, nil
}

// tx runs do in a transaction that raises every error with its statement.
func (p *plain) tx(ctx context.Context, do func(pgx.Tx) error) error {
	return pgx.BeginFunc(ctx, p.pool, func(tx pgx.Tx) error {
		if _, err := tx.Exec(ctx, `SET CONSTRAINTS ALL IMMEDIATE`); err != nil {
			return err
		}
		return do(tx)
	})
}

func (p *plain) leaveOut(id string) {
	if p.fault != namesAgain {
		p.leftOut = append(p.leftOut, id)
	}
}

// Reset forgets what the table refused.
func (p *plain) Reset() { p.leftOut = nil }
