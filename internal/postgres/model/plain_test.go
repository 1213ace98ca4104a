package model

import (
	"strings"

	"github.com/jackc/pgx/v5/pgxpool"
)

// plain is a poller.Queue in as many small statements as it takes, a row at a
// time: slow, and by its rules as good as the real one. Its faults are for the
// model to find.
type plain struct {
	pool    *pgxpool.Pool
	fault   fault
	leftOut []string // rows that the table refused
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
	failsClaim   fault = "a refused row fails the claim"
	namesAgain   fault = "a refused row is claimed again"
	chargesAll   fault = "reads are charged for refused rows"
	losesRefusal fault = "a refused settle is lost"
	shoutsEarly  fault = "what is not kept is announced"
	trustsWrites fault = "what the row did not keep counts as written"
	keepsPlace   fault = "a read row keeps its place at release"
	refundsToday fault = "reads given back to today instead of the day charged"
)

// sql leaves out the lines that the fault forgets: those whose remark names it.
func (p *plain) sql(text string) string {
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
		WHERE state = 'pending' AND next_poll_at <= now() AND lease_id = $1 AND leased_until > '-infinity' AND job_id <> ALL ($3)
		ORDER BY next_poll_at LIMIT $2
		FOR UPDATE SKIP LOCKED`
	plainDue = `
		SELECT job_id FROM video_jobs
		WHERE state = 'pending' AND next_poll_at <= now()
		AND (leased_until = '-infinity' -- claim that takes leased rows
		OR leased_until < now() -- claim that takes leased rows, lease that never runs out
		OR leased_until > now() + interval '16 minutes') -- claim that takes leased rows
		AND job_id <> ALL ($2)
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
		RETURNING lease_id = $2 AND leased_until > now(), sume_status IS NOT NULL, consecutive_errors, not_found_answers, lost_leases, polls,
		coalesce(extract(epoch FROM now() - failing_since)::float8, 0), extract(epoch FROM now() - next_poll_at)::float8`
	plainCharged = `
		SELECT to_char((leased_until - least(interval '15 minutes', make_interval(secs => $3) * power(4, lost_leases))) AT TIME ZONE 'utc', 'YYYY-MM-DD')
		FROM video_jobs WHERE job_id = $1 AND lease_id = $2 AND leased_until > '-infinity'`
	plainHeld = `
		SELECT job_id FROM video_jobs WHERE job_id = $1 AND ($2::uuid, $3::boolean) IS NOT NULL
		AND lease_id = $2 -- settle without the lease check
		AND state = 'pending' -- a final state that can be overwritten
		AND (leased_until > '-infinity' OR $3 AND (finished_at IS NOT NULL OR next_poll_at <= now())) -- a final state that can be overwritten
		FOR UPDATE SKIP LOCKED`
	plainSettle = `
		UPDATE video_jobs SET leased_until = '-infinity', lost_leases = 0,
		state = CASE WHEN $2 = '' THEN 'pending' ELSE $2 END,
		next_poll_at = now() + make_interval(secs => $3),
		finished_at = CASE WHEN $2 = '' THEN NULL ELSE now() END,
		final_status = CASE WHEN $2 = '' THEN final_status ELSE nullif($7, '')::jsonb END,
		polls = polls + ($4::boolean AND leased_until > '-infinity')::integer,
		consecutive_errors = CASE WHEN $6 = '' THEN 0 ELSE consecutive_errors + 1 END,
		failing_since = CASE WHEN $6 = '' THEN NULL ELSE coalesce(failing_since, now()) END,
		last_error = coalesce(nullif($6, ''), last_error), not_found_answers = $8,
		sume_status = coalesce(nullif($5, ''), sume_status, CASE WHEN $6 = '' THEN '' END)
		WHERE job_id = $1
		RETURNING leased_until = '-infinity' AND (state = 'pending') = ($2 = '') AND (finished_at IS NULL) = ($2 = '')
		AND ($2 <> '' OR $3 <= 0 OR next_poll_at > now())`
	plainRelease = `
		UPDATE video_jobs SET leased_until = '-infinity'
		, next_poll_at = CASE WHEN $2 THEN next_poll_at ELSE now() END -- a read row keeps its place at release
		WHERE job_id = $1 AND $2::boolean IS NOT NULL
		RETURNING leased_until = '-infinity'`
	plainOutcome = `
		SELECT CASE WHEN lease_id <> $2 THEN 1
		WHEN $4 AND state = 'pending' AND (finished_at IS NOT NULL OR next_poll_at <= now()) THEN 2
		WHEN leased_until = '-infinity' THEN CASE WHEN state = $3 THEN 0 WHEN state = 'pending' THEN 3 ELSE 1 END
		WHEN state = 'pending' THEN 2 ELSE 1 END, state
		FROM video_jobs WHERE job_id = $1`
)
