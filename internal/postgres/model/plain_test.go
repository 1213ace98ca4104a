package model

import (
	"context"
	"errors"
	"strings"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"sumepoller/internal/poller"
)

// plain is a poller.Queue in as many small statements as it takes, a row at a
// time: slow, and by its rules as good as the real one. Its faults are for the
// model to find.
type plain struct {
	pool  *pgxpool.Pool
	fault fault
}

// fault is what a plain store does wrong.
type fault string

const (
	none         fault = ""
	ignoresLease fault = "settle without the lease check"
	takesLeased  fault = "claim that takes leased rows"
	waitsForRows fault = "claim that does not skip locked rows"
	takesBlindly fault = "claim that locks nothing"
	overwrites   fault = "a final state that can be overwritten"
	keepsForEver fault = "lease that never runs out"
	chargesAgain fault = "claim that pays again when it is asked again"
	silent       fault = "finish that is not announced"
)

// sql leaves out the lines that the fault forgets: those whose remark names it.
func (p plain) sql(text string) string {
	var kept []string
	for line := range strings.Lines(text) {
		line, forgotten, _ := strings.Cut(strings.TrimSpace(line), " -- ")
		if p.fault == none || !strings.Contains(forgotten, string(p.fault)) {
			kept = append(kept, line)
		}
	}
	return strings.Join(kept, "\n")
}

const (
	plainFound = `
		SELECT job_id FROM video_jobs
		WHERE state = 'pending' AND next_poll_at <= now() AND lease_id = $1 AND leased_until > '-infinity'
		ORDER BY next_poll_at LIMIT $2
		FOR UPDATE SKIP LOCKED`
	plainDue = `
		SELECT job_id FROM video_jobs
		WHERE state = 'pending' AND next_poll_at <= now()
		AND (leased_until = '-infinity' -- claim that takes leased rows
		OR leased_until < now() -- claim that takes leased rows, lease that never runs out
		OR leased_until > now() + interval '16 minutes') -- claim that takes leased rows
		ORDER BY next_poll_at LIMIT $1
		FOR UPDATE -- claim that locks nothing
		SKIP LOCKED -- claim that does not skip locked rows, claim that locks nothing`
	plainLease = `
		UPDATE video_jobs SET
		lost_leases = lost_leases + (leased_until > '-infinity' AND lease_id <> $2)::integer,
		leased_until = now() + least(interval '15 minutes', make_interval(secs => $3) *
			power(4, lost_leases + (leased_until > '-infinity' AND lease_id <> $2)::integer)),
		lease_id = $2
		WHERE job_id = $1
		RETURNING sume_status IS NOT NULL, consecutive_errors, coalesce(last_error, ''), lost_leases,
		coalesce(extract(epoch FROM now() - failing_since)::float8, 0), extract(epoch FROM now() - next_poll_at)::float8`
	plainHeld = `
		SELECT job_id FROM video_jobs WHERE job_id = $1
		AND lease_id = $2 -- settle without the lease check
		AND state = 'pending' -- a final state that can be overwritten
		AND leased_until > '-infinity' -- a final state that can be overwritten
		FOR UPDATE SKIP LOCKED`
	plainSettle = `
		UPDATE video_jobs SET leased_until = '-infinity', lost_leases = 0,
		state = CASE WHEN $2 = '' THEN state ELSE $2 END,
		next_poll_at = CASE WHEN $2 = '' THEN now() + make_interval(secs => $3) ELSE next_poll_at END,
		finished_at = CASE WHEN $2 = '' THEN finished_at ELSE now() END,
		final_status = CASE WHEN $2 = '' THEN final_status ELSE nullif($7, '')::jsonb END,
		polls = polls + $4::boolean::integer,
		consecutive_errors = CASE WHEN $6 = '' THEN 0 ELSE consecutive_errors + 1 END,
		failing_since = CASE WHEN $6 = '' THEN NULL ELSE coalesce(failing_since, now()) END,
		last_error = coalesce(nullif($6, ''), last_error),
		sume_status = coalesce(nullif($5, ''), sume_status, CASE WHEN $6 = '' THEN '' END)
		WHERE job_id = $1`
	plainOutcome = `
		SELECT CASE WHEN lease_id <> $2 THEN 1
		WHEN leased_until = '-infinity' THEN CASE WHEN state = $3 THEN 0 ELSE 1 END
		WHEN state = 'pending' THEN 2 ELSE 1 END
		FROM video_jobs WHERE job_id = $1`
)

// Claim implements poller.Queue.
func (p plain) Claim(ctx context.Context, r poller.ClaimRequest) (got poller.Claimed, err error) {
	err = pgx.BeginFunc(ctx, p.pool, func(tx pgx.Tx) error {
		got = poller.Claimed{}
		if err := today(ctx, tx, &got.Day); err != nil {
			return err
		}
		found, err := list(ctx, tx, plainFound, r.Lease, r.Limit)
		if err != nil {
			return err
		}
		fresh := len(found) == 0
		if fresh {
			room := r.Limit
			if r.Ceiling >= 0 {
				room = max(0, min(room, r.Ceiling-got.Day.Reads))
			}
			if found, err = list(ctx, tx, p.sql(plainDue), room); err != nil {
				return err
			}
		}
		if r.Ceiling >= 0 && (fresh || p.fault == chargesAgain) {
			got.Day.Reads += len(found)
		}
		for _, id := range found {
			job := poller.Job{ID: id}
			var failing, late float64
			err := tx.QueryRow(ctx, plainLease, id, r.Lease, r.For.Seconds()).
				Scan(&job.Answered, &job.ConsecutiveErrors, &job.LastError, &job.LostLeases, &failing, &late)
			if err != nil {
				return err
			}
			job.Failing, job.Late = seconds(failing), seconds(late)
			got.Jobs = append(got.Jobs, job)
		}
		_, err = tx.Exec(ctx, `UPDATE read_budget SET reads = $1`, got.Day.Reads)
		return err
	})
	return got, err
}

// Settle implements poller.Queue.
func (p plain) Settle(ctx context.Context, batch []poller.Settlement) ([]poller.Outcome, error) {
	outcomes := make([]poller.Outcome, len(batch))
	for i, s := range batch {
		err := pgx.BeginFunc(ctx, p.pool, func(tx pgx.Tx) (err error) {
			outcomes[i], err = p.change(ctx, tx, s.JobID, s.Lease, s.State, func() error {
				_, err := tx.Exec(ctx, plainSettle, s.JobID, s.State, s.Delay.Seconds(), s.Polled, s.Status, s.Error, string(s.Final))
				if err != nil || s.State == "" || p.fault == silent {
					return err
				}
				const announce = `SELECT pg_notify('video_jobs_finished', json_build_object('job_id', $1::text, 'state', $2::text)::text)`
				_, err = tx.Exec(ctx, announce, s.JobID, s.State)
				return err
			})
			return err
		})
		if err != nil {
			return nil, err
		}
	}
	return outcomes, nil
}

// Release implements poller.Queue.
func (p plain) Release(ctx context.Context, date string, holds []poller.Release) ([]poller.Outcome, error) {
	outcomes := make([]poller.Outcome, len(holds))
	for i, h := range holds {
		err := pgx.BeginFunc(ctx, p.pool, func(tx pgx.Tx) (err error) {
			outcomes[i], err = plain{}.change(ctx, tx, h.JobID, h.Lease, "", func() error {
				if _, err := tx.Exec(ctx, `UPDATE video_jobs SET leased_until = '-infinity' WHERE job_id = $1`, h.JobID); err != nil || !h.Unread {
					return err
				}
				_, err := tx.Exec(ctx, `UPDATE read_budget SET reads = greatest(0, reads - 1) WHERE day::text = $1`, date)
				return err
			})
			return err
		})
		if err != nil {
			return nil, err
		}
	}
	return outcomes, nil
}

// change runs do where the row is held under the lease, else tells what became
// of it.
func (p plain) change(ctx context.Context, tx pgx.Tx, id string, lease poller.LeaseID, state string, do func() error) (poller.Outcome, error) {
	args := []any{id, lease}
	if p.fault == ignoresLease {
		args = args[:1]
	}
	err := tx.QueryRow(ctx, p.sql(plainHeld), args...).Scan(&id)
	if err == nil {
		return poller.Done, do()
	}
	if !errors.Is(err, pgx.ErrNoRows) {
		return 0, err
	}
	if state == "" {
		state = poller.StatePending
	}
	outcome := poller.Lost
	err = tx.QueryRow(ctx, plainOutcome, id, lease, state).Scan(&outcome)
	return outcome, err
}
