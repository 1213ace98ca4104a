package postgres

import (
	"context"
	"fmt"

	"sumepoller/internal/poller"
)

// releaseSQL gives leased rows back and their unread reads to the day; it
// returns the batch's positions it wrote, counted from 1. releaseSkippingSQL
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
      AND (SELECT set_config('lock_timeout', $6::text, true)) IS NOT NULL
    ORDER BY j.job_id
    FOR NO KEY UPDATE OF j`

	releaseWritten = `
),
-- Due as before, with nothing counted: only the lease is cleared. Leases lost
-- earlier stay counted, since nothing was settled.
freed AS (
    UPDATE video_jobs AS j
    SET leased_until = '-infinity'
    FROM held AS h
    WHERE j.ctid = h.row_at
    RETURNING h.n, h.unread
),
-- Only what this statement freed: asked again it gives nothing back. The count
-- comes from FROM, not from a sub-select: where another run changed the day's
-- row meanwhile, PostgreSQL looks at the row again and keeps the count.
refunded AS (
    UPDATE read_budget AS b
    SET reads = greatest(0, b.reads - f.unread)
    FROM (SELECT count(*) AS unread FROM freed WHERE unread) AS f
    WHERE f.unread > 0 AND b.day = nullif($5::text, '')::date
)
SELECT n FROM freed`
)

// Release implements poller.Queue. An empty date gives no reads back, and
// neither does a store whose claims do not count them.
func (s *Store) Release(ctx context.Context, date string, holds []poller.Hold) ([]poller.Outcome, error) {
	if len(holds) == 0 {
		return nil, nil
	}
	k, unread := keys{}, make([]bool, len(holds))
	_, counted := s.claim.lease()
	for i, h := range holds {
		k.ids = append(k.ids, cleanText(h.JobID))
		k.leases = append(k.leases, uuid(h.Lease))
		k.states = append(k.states, poller.StatePending)
		unread[i] = h.Unread && counted
	}
	outcomes, err := s.write(ctx, releaseSQL, releaseSkippingSQL, k, unread, date)
	s.claim.forget() // the rows are due again, below the bound
	if err != nil {
		return nil, fmt.Errorf("release %s: %w", named(holds[0].JobID, len(holds)), err)
	}
	return outcomes, nil
}
