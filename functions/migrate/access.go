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

// access tries a role's writes on video_jobs with the role's login, and compares
// the rows that the role sees and may lock with those that the administrator sees.
// If row-level security limits the administrator too, there is nothing to compare
// with, and the rows that may be hidden are a warning.
func access(ctx context.Context, admin, as *pgxpool.Pool, r role) (problems []error, warnings []string, err error) {
	got, err := migrations.TryAs(ctx, as.Config())
	if err != nil {
		return nil, nil, err
	}
	for _, line := range got.Denied {
		problems = append(problems, errors.New(line))
	}
	if len(got.Hidden) == 0 {
		return problems, nil, nil
	}
	seen, err := compareRows(ctx, admin, as, r)
	switch {
	case err != nil:
		return problems, nil, err
	case !seen.comparable:
		warnings = got.Hidden
	case seen.sees < seen.all || seen.locks < seen.all:
		for _, line := range got.Hidden {
			problems = append(problems, fmt.Errorf("of %d rows that were compared, role %s sees %d and may lock %d: %s", seen.all, r.name, seen.sees, seen.locks, line))
		}
	}
	return problems, warnings, nil
}

// rowsSeen counts the rows of a comparison.
type rowsSeen struct {
	comparable       bool // the administrator sees all rows
	all, sees, locks int
}

const (
	// sampleSQL takes rows through the due index, and the first rows of the table.
	sampleSQL = `
(SELECT job_id::text FROM video_jobs WHERE state = 'pending' ORDER BY next_poll_at LIMIT 500)
UNION (SELECT job_id::text FROM video_jobs LIMIT 500)`
	seesSQL  = `SELECT count(*) FROM video_jobs WHERE job_id = ANY ($1::text[])`
	locksSQL = `SELECT count(*) FROM (SELECT FROM video_jobs WHERE job_id = ANY ($1::text[]) FOR NO KEY UPDATE) AS locked`
	// lockSample limits how many rows are locked, for a short time.
	lockSample = 100
)

// compareRows counts the rows of a sample that the role sees and may lock. It locks
// no rows for a role that may not update, and stops locking when another program
// holds a row too long.
func compareRows(ctx context.Context, admin, as *pgxpool.Pool, r role) (seen rowsSeen, err error) {
	own, err := migrations.TryAs(ctx, admin.Config())
	if err != nil || len(own.Hidden)+len(own.Denied) > 0 {
		return rowsSeen{}, err
	}
	rows, err := admin.Query(ctx, sampleSQL)
	if err != nil {
		return rowsSeen{}, fmt.Errorf("read video_jobs: %w", plain(err))
	}
	ids, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if err != nil {
		return rowsSeen{}, fmt.Errorf("read video_jobs: %w", plain(err))
	}
	seen.comparable = true
	err = pgx.BeginFunc(ctx, as, func(tx pgx.Tx) error {
		return tx.QueryRow(ctx, seesSQL, ids).Scan(&seen.sees)
	})
	if err != nil {
		return rowsSeen{}, fmt.Errorf("read video_jobs: %w", plain(err))
	}
	// Counted last, so that a row that was deleted meanwhile does not count as hidden.
	if err := admin.QueryRow(ctx, seesSQL, ids).Scan(&seen.all); err != nil {
		return rowsSeen{}, fmt.Errorf("read video_jobs: %w", plain(err))
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
		return rowsSeen{}, fmt.Errorf("read video_jobs: %w", plain(err))
	}
	seen.locks -= max(0, there-locked)
	return seen, nil
}
