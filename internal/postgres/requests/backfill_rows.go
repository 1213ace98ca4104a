package requests

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"sumepoller/internal/operator"
	"sumepoller/internal/postgres/statement"
)

var (
	pickSQL     = statement.Read(files, "backfill_pick")
	registerSQL = statement.Read(files, "backfill_register")
	lockSQL     = statement.Read(files, "backfill_lock")
	moveSQL     = statement.Read(files, "backfill_move")
)

// backfillRows are the rows that a backfill selects, in the order of their places.
// The slices are parallel, as the statements take them.
type backfillRows struct {
	ids     []string
	asked   []bool
	changed int
	states  map[string]bool // the states of the rows

	newIDs    []string
	newPlaces []int64
}

// pick selects the rows without locking them. With a limit, two concurrent
// identical requests then select the same rows.
func pick(ctx context.Context, tx pgx.Tx, b operator.Backfill, pace time.Duration) (*backfillRows, error) {
	found, err := tx.Query(ctx, pickSQL, statement.Args{
		"job_ids": list(b.JobIDs), "states": list(b.States), "overdue": b.Overdue, "limit": int64(b.Limit), "pace": pace.Microseconds(),
		"created_after": unixMicro(b.CreatedAfter), "created_before": unixMicro(b.CreatedBefore), "max_rows": int64(maxBackfill + 1),
	})
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

// tooMany names the field that makes the request small enough.
func tooMany(b operator.Backfill) error {
	if n := len(b.JobIDs); n > maxBackfill {
		return operator.InvalidRequest(fmt.Sprintf("backfill.job_ids: %d ids; one backfill takes at most %d rows, so split them", n, maxBackfill))
	}
	return operator.InvalidRequest(fmt.Sprintf("backfill.limit: want at most %d, since the request selects more rows than that", maxBackfill))
}

// count returns what apply would do.
func (r *backfillRows) count() operator.Backfilled {
	return operator.Backfilled{Registered: len(r.newIDs), Reopened: r.changed}
}

// apply registers the new ids, locks the rows to change, and changes them.
func (r *backfillRows) apply(ctx context.Context, tx pgx.Tx, b operator.Backfill, pace time.Duration) (operator.Backfilled, error) {
	var done operator.Backfilled
	if len(r.newIDs) > 0 {
		added, err := tx.Exec(ctx, registerSQL, statement.Args{"job_ids": r.newIDs, "places": r.newPlaces, "pace": pace.Microseconds()})
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
	moved, err := tx.Exec(ctx, moveSQL, statement.Args{
		"job_ids": locked.ids, "asked": locked.asked, "places": locked.places, "states": list(b.States), "overdue": b.Overdue,
		"pace": pace.Microseconds(), "longest_lease": longestLease,
	})
	if err != nil {
		return done, fmt.Errorf("reopen jobs: %w", err)
	}
	done.Reopened = int(moved.RowsAffected())
	return done, nil
}

// lockedRows are the rows that apply changes, in the order of job_id.
type lockedRows struct {
	ids    []string
	asked  []bool
	places []int64
}

func (r *backfillRows) lock(ctx context.Context, tx pgx.Tx, b operator.Backfill, pace time.Duration) (lockedRows, error) {
	var locked lockedRows
	found, err := tx.Query(ctx, lockSQL, statement.Args{
		"job_ids": r.ids, "asked": r.asked, "states": list(b.States), "overdue": b.Overdue, "pace": pace.Microseconds(),
	})
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
