package jobs

import (
	"context"
	"fmt"

	"sumepoller/internal/poller"
	"sumepoller/internal/postgres"
)

// releaseSQL gives leased rows back and their unread reads to the day; it
// returns what settleSQL does. releaseSkippingSQL
// leaves out rows that another program holds.
const (
	releaseSQL         = releaseLocked + releaseWritten
	releaseSkippingSQL = releaseLocked + ` SKIP LOCKED` + releaseWritten

	releaseLocked = `
-- The rows still held under their lease, found and locked as in a settle. $3 is
-- the state they keep.
WITH held AS MATERIALIZED (
    SELECT j.ctid AS row_at, b.n, b.unread
    FROM unnest((SELECT $1::text[]), (SELECT $2::text[]), (SELECT $3::text[]), (SELECT $4::boolean[]))
         WITH ORDINALITY AS b (job_id, lease_id, state, unread, n)
    JOIN video_jobs AS j ON j.job_id = b.job_id AND j.lease_id = b.lease_id::uuid
    WHERE coalesce(j.state, '') = b.state
      AND j.leased_until > '-infinity'
      AND (SELECT set_config('lock_timeout', $7::text, true)) IS NOT NULL
    ORDER BY j.job_id
    FOR NO KEY UPDATE OF j`

	releaseWritten = `
),
-- Due, with nothing counted. An unread row keeps its place: only the lease is
-- cleared, and no index changes. A row that was read goes behind all others that
-- are due, or it would stay at the head. Leases lost earlier stay counted, since
-- nothing was settled.
freed AS (
    UPDATE video_jobs AS j
    SET leased_until = '-infinity',
        next_poll_at = CASE WHEN h.unread THEN j.next_poll_at ELSE now() END
    FROM held AS h
    WHERE j.ctid = h.row_at
    RETURNING h.n, h.unread, j.leased_until = '-infinity' AS kept
),
-- Only what this statement freed: asked again it gives nothing back. The count
-- comes from FROM, not from a sub-select: where another run changed the day's
-- row meanwhile, PostgreSQL looks at the row again and keeps the count.
refunded AS (
    UPDATE read_budget AS b
    SET reads = greatest(0, b.reads - f.unread)
    FROM (SELECT count(*) AS unread FROM freed WHERE unread AND kept AND $6::boolean) AS f
    WHERE f.unread > 0 AND b.day = nullif($5::text, '')::date
)
SELECT n, 'pending', coalesce(kept, false), NULL::text FROM freed`
)

// Release implements poller.Queue. An empty date gives no reads back, and
// neither does a store whose claims do not count them.
func (s *Store) Release(ctx context.Context, date string, rows []poller.Release) ([]poller.Result, error) {
	if len(rows) == 0 {
		return nil, nil
	}
	results, err := s.releasePart(ctx, date, rows)
	s.claim.forget() // the rows are due again, below the bound
	if err != nil {
		return nil, fmt.Errorf("release %s: %w", named(rows[0].JobID, len(rows)), err)
	}
	return results, nil
}

// releasePart releases rows in one statement, and apart from each other where
// the table refuses that.
func (s *Store) releasePart(ctx context.Context, date string, rows []poller.Release) ([]poller.Result, error) {
	results, err := s.releaseOnce(ctx, date, rows)
	switch {
	case err == nil:
		for i, row := range rows {
			s.explain(ctx, &results[i], row.JobID, poller.WriteRelease)
		}
		return results, nil
	case !postgres.Refused(err) && (!postgres.MaybeOneRow(err) || postgres.Transient(err) || len(rows) == 1):
		return nil, err
	}
	if _, err := s.releaseOnce(ctx, date, nil); err != nil {
		return nil, err // without any row: the statement itself is refused
	}
	if len(rows) == 1 {
		s.claim.leaveOut(rows[0].JobID)
		refusal := refusalOf(rows[0].JobID, err, poller.WriteRelease)
		return []poller.Result{{Outcome: poller.Refused, Error: &refusal}}, nil
	}
	first, err := s.releasePart(ctx, date, rows[:len(rows)/2])
	if err != nil {
		return nil, err
	}
	second, err := s.releasePart(ctx, date, rows[len(rows)/2:])
	return append(first, second...), err
}

// releaseOnce runs the release's statement.
func (s *Store) releaseOnce(ctx context.Context, date string, rows []poller.Release) ([]poller.Result, error) {
	k, unread := keys{[]string{}, []string{}, []string{}, make([]bool, len(rows))}, make([]bool, len(rows))
	_, counted := s.claim.lease()
	for i, row := range rows {
		k.ids = append(k.ids, cleanText(row.JobID))
		k.leases = append(k.leases, uuid(row.Lease))
		k.states = append(k.states, poller.StatePending)
		unread[i] = row.Unread
	}
	return s.write(ctx, releaseSQL, releaseSkippingSQL, k, unread, date, counted)
}
