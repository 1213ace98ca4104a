package requests

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5"

	"sumepoller/internal/operator"
)

// maxBackfill bounds one transaction and the memory for its ids.
const maxBackfill = 250_000

// pickRows lists what a backfill means, in the order in which it is read: each
// row's id, whether it is in the table, whether it was asked for by id, and
// whether it would be changed.
//
// The place of a row counts all that the payload means, those in good order
// too, so that asking again gives each row the place it had. Rows without
// created_at were there before the column was: they are the oldest.
var pickRows = `
WITH asked AS MATERIALIZED (
    SELECT a.job_id FROM unnest($1::text[]) AS a (job_id)
), picked AS (
    -- By id, in the table or not.
    SELECT a.job_id, v.job_id IS NOT NULL AS known, true AS asked, v.state, v.next_poll_at,
           CASE WHEN v.job_id IS NULL THEN now() ELSE v.created_at END AS created_at
      FROM asked a
      LEFT JOIN video_jobs v ON v.job_id = a.job_id
    UNION ALL
    -- Finished, in one of the states.
    SELECT v.job_id, true, false, v.state, v.next_poll_at, v.created_at
      FROM video_jobs v
     WHERE cardinality($2::text[]) > 0 AND v.state = ANY ($2::text[])
       AND ($4::bigint IS NULL OR v.created_at >= ` + givenTime("$4") + `)
       AND ($5::bigint IS NULL OR v.created_at < ` + givenTime("$5") + `)
       AND NOT EXISTS (SELECT FROM asked a WHERE a.job_id = v.job_id)
    UNION ALL
    -- Pending and in back-off.
    SELECT v.job_id, true, false, v.state, v.next_poll_at, v.created_at
      FROM video_jobs v
     WHERE $3::boolean AND v.state = 'pending' AND v.failing_since IS NOT NULL
       AND ($4::bigint IS NULL OR v.created_at >= ` + givenTime("$4") + `)
       AND ($5::bigint IS NULL OR v.created_at < ` + givenTime("$5") + `)
       AND NOT EXISTS (SELECT FROM asked a WHERE a.job_id = v.job_id)
), placed AS (
    SELECT p.job_id, p.known, p.asked, p.state, p.next_poll_at,
           row_number() OVER (ORDER BY p.created_at NULLS FIRST, p.job_id) AS place
      FROM picked p
)
SELECT p.job_id, coalesce(p.state, ''), p.known, p.asked,
       p.known AND (p.state IS DISTINCT FROM 'pending'
                    OR coalesce(p.next_poll_at, 'infinity')
                       > statement_timestamp() + greatest(p.place - 100, 0) * $7::bigint * interval '1 microsecond') AS changes
  FROM placed p
 WHERE $6::bigint = 0 OR p.place <= $6::bigint
 ORDER BY p.place
 LIMIT $8::bigint`

// addRows registers ids that were not in the table, in the order of job_id, so
// that twins wait for each other and never in a circle.
const addRows = `
INSERT INTO video_jobs (job_id, state, next_poll_at)
SELECT p.job_id, 'pending', statement_timestamp() + greatest(p.place - 100, 0) * $3::bigint * interval '1 microsecond'
  FROM unnest($1::text[], $2::bigint[]) AS p (job_id, place)
 ORDER BY p.job_id
ON CONFLICT (job_id) DO NOTHING`

// dueToMove holds for a row v that a backfill changes, as the row is now: a
// finished one asked for by id or by its state, and a pending one asked for or
// in back-off that would else be read later. It is locked under this rule and
// changed under it.
const dueToMove = `(
        v.state IS DISTINCT FROM 'pending' AND (p.asked OR v.state = ANY ($3::text[]))
     OR v.state = 'pending' AND (p.asked OR $4::boolean AND v.failing_since IS NOT NULL)
        AND coalesce(v.next_poll_at, 'infinity') > statement_timestamp() + greatest(p.place - 100, 0) * $5::bigint * interval '1 microsecond')`

// lockRows locks what is to be changed, in the order of job_id, and nothing
// else: a pending row that is due already may be held by a reader.
const lockRows = `
SELECT v.job_id, p.asked, p.place
  FROM unnest($1::text[], $2::boolean[]) WITH ORDINALITY AS p (job_id, asked, place)
  JOIN video_jobs v ON v.job_id = p.job_id
 WHERE ` + dueToMove + `
 ORDER BY v.job_id
   FOR NO KEY UPDATE OF v`

// moveRows makes the locked rows pending and due at their place. What a row
// went through stays, apart from the counters that would hold it back. A lease
// under way stays too; a mark of an old one goes, so that a late writer that
// finished the row before does not take it for its own.
const moveRows = `
UPDATE video_jobs v
   SET state              = 'pending',
       next_poll_at       = statement_timestamp() + greatest(p.place - 100, 0) * $5::bigint * interval '1 microsecond',
       finished_at        = CASE WHEN v.state = 'pending' THEN v.finished_at END,
       consecutive_errors = CASE WHEN v.state = 'pending' THEN v.consecutive_errors ELSE 0 END,
       failing_since      = CASE WHEN v.state = 'pending' THEN v.failing_since END,
       lost_leases        = CASE WHEN v.state = 'pending' THEN v.lost_leases ELSE 0 END,
       lease_id           = CASE WHEN v.state = 'pending' OR v.leased_until > now() THEN v.lease_id
                                 ELSE '00000000-0000-0000-0000-000000000000' END
  FROM unnest($1::text[], $2::boolean[], $6::bigint[]) AS p (job_id, asked, place)
 WHERE v.job_id = p.job_id
   AND ` + dueToMove

// Backfill counts and, unless it is a dry run, registers, reopens and makes due.
func (h *Table) Backfill(ctx context.Context, b operator.Backfill, pace time.Duration) (operator.Backfilled, error) {
	var done operator.Backfilled
	work := func(tx pgx.Tx) error {
		rows, err := pick(ctx, tx, b, pace)
		if err != nil {
			return err
		}
		note, err := stateNote(ctx, tx, b, rows)
		if err != nil {
			return err
		}
		if b.DryRun {
			done = rows.count()
		} else {
			done, err = rows.apply(ctx, tx, b, pace)
		}
		done.Note = note
		return err
	}
	var err error
	if b.DryRun {
		err = h.inTx(ctx, pgx.TxOptions{IsoLevel: pgx.RepeatableRead, AccessMode: pgx.ReadOnly}, work)
	} else {
		err = h.change(ctx, work)
	}
	if err != nil {
		return operator.Backfilled{}, attempted("backfill", "backfill", err)
	}
	return done, nil
}
