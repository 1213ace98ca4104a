package main

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"

	"sumepoller/migrations"
)

// access tries a role's writes on video_jobs with its own login, and compares
// the rows that it sees and may lock with those that the administrator sees.
// Where row-level security limits the administrator too, there is nothing to
// compare with, and what may be hidden is a warning.
func access(ctx context.Context, admin, as *pgxpool.Pool, r role) (faults []error, warnings []string, err error) {
	got, err := migrations.TryAs(ctx, as.Config())
	if err != nil {
		return nil, nil, err
	}
	for _, line := range got.Denied {
		faults = append(faults, errors.New(line))
	}
	if len(got.Hidden) == 0 {
		return faults, nil, nil
	}
	seen, err := compareRows(ctx, admin, as, r)
	switch {
	case err != nil:
		return faults, nil, err
	case !seen.comparable:
		warnings = got.Hidden
	case seen.sees < seen.all || seen.locks < seen.all:
		for _, line := range got.Hidden {
			faults = append(faults, fmt.Errorf("of %d rows that were compared, role %s sees %d and may lock %d: %s", seen.all, r.name, seen.sees, seen.locks, line))
		}
	}
	return faults, warnings, nil
}

// rowsSeen counts the rows of a comparison.
type rowsSeen struct {
	comparable       bool // the administrator sees all rows
	all, sees, locks int
}

const (
	// sampleSQL takes rows through the due index, and the first of the table.
	sampleSQL = `
(SELECT job_id::text FROM video_jobs WHERE state = 'pending' ORDER BY next_poll_at LIMIT 500)
UNION (SELECT job_id::text FROM video_jobs LIMIT 500)`
	seesSQL  = `SELECT count(*) FROM video_jobs WHERE job_id = ANY ($1::text[])`
	locksSQL = `SELECT count(*) FROM (SELECT FROM video_jobs WHERE job_id = ANY ($1::text[]) FOR NO KEY UPDATE) AS locked`
	// lockSample bounds how many rows are locked for a moment.
	lockSample = 100
)

// compareRows compares the role's view with the administrator's. A role that
// may not update locks no row, and a row that another program holds too long
// ends the comparison of locks.
func compareRows(ctx context.Context, admin, as *pgxpool.Pool, r role) (seen rowsSeen, err error) {
	own, err := migrations.TryAs(ctx, admin.Config())
	if err != nil || len(own.Hidden)+len(own.Denied) > 0 {
		return rowsSeen{}, err
	}
	rows, err := admin.Query(ctx, sampleSQL)
	if err != nil {
		return rowsSeen{}, fmt.Errorf("look at video_jobs: %w", plain(err))
	}
	ids, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if err != nil {
		return rowsSeen{}, fmt.Errorf("look at video_jobs: %w", plain(err))
	}
	seen.comparable = true
	err = pgx.BeginFunc(ctx, as, func(tx pgx.Tx) error {
		return tx.QueryRow(ctx, seesSQL, ids).Scan(&seen.sees)
	})
	if err != nil {
		return rowsSeen{}, fmt.Errorf("look at video_jobs: %w", plain(err))
	}
	// Counted last: a row that was deleted meanwhile is hidden from nobody.
	if err := admin.QueryRow(ctx, seesSQL, ids).Scan(&seen.all); err != nil {
		return rowsSeen{}, fmt.Errorf("look at video_jobs: %w", plain(err))
	}
	seen.locks = seen.all
	if seen.sees < seen.all || !strings.Contains(r.rights.On("video_jobs"), "UPDATE") {
		return seen, nil
	}
	few := ids[:min(len(ids), lockSample)]
	var locked, there int
	err = pgx.BeginFunc(ctx, as, func(tx pgx.Tx) error {
		if _, err := tx.Exec(ctx, `SET LOCAL lock_timeout = '500ms'`); err != nil {
			return err
		}
		return tx.QueryRow(ctx, locksSQL, few).Scan(&locked)
	})
	var held *pgconn.PgError
	if errors.As(err, &held) && held.Code == "55P03" {
		return seen, nil
	}
	if err != nil {
		return rowsSeen{}, fmt.Errorf("lock rows of video_jobs: %w", plain(err))
	}
	if err := admin.QueryRow(ctx, seesSQL, few).Scan(&there); err != nil {
		return rowsSeen{}, fmt.Errorf("look at video_jobs: %w", plain(err))
	}
	seen.locks -= max(0, there-locked)
	return seen, nil
}
