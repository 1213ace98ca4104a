package requests

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"sumepoller/internal/operator"
)

// backfillRows are the rows that a backfill means, in the order of their
// places. The slices run side by side, as the statements take them.
type backfillRows struct {
	ids     []string
	asked   []bool
	changed int
	states  map[string]bool // that the rows are in

	newIDs    []string
	newPlaces []int64
}

// pick finds out what the payload means, without a lock: a limit then takes
// the same rows for twins that were sent at once.
func pick(ctx context.Context, tx pgx.Tx, b operator.Backfill, pace time.Duration) (*backfillRows, error) {
	found, err := tx.Query(ctx, pickRows, list(b.JobIDs), list(b.States), b.Overdue,
		instantOf(b.CreatedAfter), instantOf(b.CreatedBefore), int64(b.Limit), pace.Microseconds(), int64(maxBackfill+1))
	if err != nil {
		return nil, fmt.Errorf("pick rows: %w", err)
	}
	rows := &backfillRows{states: map[string]bool{}}
	var id, state string
	var known, asked, changes bool
	_, err = pgx.ForEachRow(found, []any{&id, &state, &known, &asked, &changes}, func() error {
		rows.states[state] = true
		rows.ids = append(rows.ids, id)
		rows.asked = append(rows.asked, asked)
		if !known {
			rows.newIDs = append(rows.newIDs, id)
			rows.newPlaces = append(rows.newPlaces, int64(len(rows.ids)))
		}
		if changes {
			rows.changed++
		}
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("pick rows: %w", err)
	}
	if len(rows.ids) > maxBackfill {
		return nil, tooMany(b)
	}
	return rows, nil
}

// tooMany names the field that brings the payload down to what is taken.
func tooMany(b operator.Backfill) error {
	if n := len(b.JobIDs); n > maxBackfill {
		return operator.InvalidRequest(fmt.Sprintf("backfill.job_ids: %d ids; one backfill takes at most %d rows, so split them", n, maxBackfill))
	}
	return operator.InvalidRequest(fmt.Sprintf("backfill.limit: want at most %d, since the payload means more rows than that", maxBackfill))
}

// count tells what apply would do.
func (r *backfillRows) count() operator.Backfilled {
	return operator.Backfilled{Registered: len(r.newIDs), Reopened: r.changed}
}

// apply registers what is new, then locks what changes, then changes it. The
// times are taken from the database's clock after the locks are held, so that
// a twin that had to wait comes later and moves nothing.
func (r *backfillRows) apply(ctx context.Context, tx pgx.Tx, b operator.Backfill, pace time.Duration) (operator.Backfilled, error) {
	var done operator.Backfilled
	if len(r.newIDs) > 0 {
		added, err := tx.Exec(ctx, addRows, r.newIDs, r.newPlaces, pace.Microseconds())
		if err != nil {
			return done, fmt.Errorf("register jobs: %w", err)
		}
		done.Registered = int(added.RowsAffected())
	}
	if len(r.ids) == 0 {
		return done, nil
	}
	locked, err := r.lock(ctx, tx, b, pace)
	if err != nil || len(locked.ids) == 0 {
		return done, err
	}
	moved, err := tx.Exec(ctx, moveRows, locked.ids, locked.asked, list(b.States), b.Overdue, pace.Microseconds(), locked.places)
	if err != nil {
		return done, fmt.Errorf("reopen jobs: %w", err)
	}
	done.Reopened = int(moved.RowsAffected())
	return done, nil
}

// lockedRows are the rows that apply changes, by job_id.
type lockedRows struct {
	ids    []string
	asked  []bool
	places []int64
}

func (r *backfillRows) lock(ctx context.Context, tx pgx.Tx, b operator.Backfill, pace time.Duration) (lockedRows, error) {
	var locked lockedRows
	found, err := tx.Query(ctx, lockRows, r.ids, r.asked, list(b.States), b.Overdue, pace.Microseconds())
	if err != nil {
		return locked, fmt.Errorf("lock jobs: %w", err)
	}
	var id string
	var asked bool
	var place int64
	_, err = pgx.ForEachRow(found, []any{&id, &asked, &place}, func() error {
		locked.ids = append(locked.ids, id)
		locked.asked = append(locked.asked, asked)
		locked.places = append(locked.places, place)
		return nil
	})
	if err != nil {
		return locked, fmt.Errorf("lock jobs: %w", err)
	}
	return locked, nil
}

// list gives an empty array in place of NULL, which no row would match.
func list(s []string) []string {
	if s == nil {
		return []string{}
	}
	return s
}
