package main

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"time"

	"sumepoller/internal/bench/database"
	"sumepoller/internal/config"
	"sumepoller/internal/poller"
	"sumepoller/internal/postgres"
	"sumepoller/internal/postgres/jobs"
)

const (
	passes      = 10
	claimRows   = 64 // of one claim
	batchClaims = 3  // claims whose rows are settled by one statement
)

// tableRows are the sizes of the table.
var tableRows = []int{10_000, 100_000, 1_000_000}

// phases are the passes that are measured.
var phases = map[int]string{0: "fresh", passes - 1: "after ten passes", 2*passes - 1: "under a snapshot"}

// claimFigure names the figure of a pass.
func claimFigure(rows, pass int) string {
	return fmt.Sprintf("%d rows, %s: buffers a row", rows, phases[pass])
}

// claims measures the buffers that a claim touches at three sizes of the table:
// in the first pass over the oldest rows, in the tenth, and in the tenth while
// a snapshot is held elsewhere. All rows are due, before and after each pass.
func claims(ctx context.Context, s *scene) error {
	u, err := newSetup(ctx, s)
	if err != nil {
		return err
	}
	defer u.stop()
	for range rounds {
		for _, rows := range tableRows {
			if err := u.claimsOf(ctx, s, rows); err != nil {
				return fmt.Errorf("%d rows: %w", rows, err)
			}
		}
	}
	return nil
}

// claimsOf measures a table of so many rows. A pass claims all of the smallest
// table and 2,000 of the others.
func (u *setup) claimsOf(ctx context.Context, s *scene, rows int) error {
	d, err := u.db.Fresh(ctx)
	if err != nil {
		return err
	}
	defer d.Drop(ctx)
	if err := errors.Join(d.Fill(ctx, rows), d.Checkpoint(ctx)); err != nil {
		return err
	}
	each := rows
	if rows > 10_000 {
		each = 2_000
	}
	pool, err := postgres.Connect(ctx, config.Database{URL: d.URL, MaxConns: 1}, nil)
	if err != nil {
		return err
	}
	defer pool.Close()
	store := jobs.New(pool)
	for n := range 2 * passes {
		if n == passes {
			release, err := d.Snapshot(ctx)
			if err != nil {
				return err
			}
			defer release()
			store.Reset() // as each run does
		}
		buffers, err := claimPass(ctx, d, store, each)
		if err != nil {
			return err
		}
		if _, found := phases[n]; found {
			s.add(claimFigure(rows, n), "", buffers)
		}
	}
	return nil
}

// claimPass claims so many rows, makes them due again, and returns the buffers
// a row that the claims touched.
func claimPass(ctx context.Context, d *database.Database, store *jobs.Store, rows int) (float64, error) {
	if err := d.ResetCounters(ctx); err != nil {
		return 0, err
	}
	var batch []poller.Settlement
	for got := 0; got < rows; {
		r := poller.ClaimRequest{Limit: min(claimRows, rows-got), For: 30 * time.Second, PaceLine: 1_000_000_000}
		_, _ = rand.Read(r.Lease[:])
		claimed, err := store.Claim(ctx, r)
		if err != nil {
			return 0, err
		}
		if len(claimed.Jobs) == 0 {
			return 0, fmt.Errorf("nothing due after %d of %d rows", got, rows)
		}
		got += len(claimed.Jobs)
		for _, job := range claimed.Jobs {
			batch = append(batch, poller.Settlement{JobID: job.ID, Lease: r.Lease, Polled: true, Status: "processing"})
		}
		if len(batch) < claimRows*batchClaims && got < rows {
			continue
		}
		if _, err := store.Settle(ctx, batch); err != nil {
			return 0, err
		}
		batch = batch[:0]
	}
	buffers, err := d.ClaimBuffers(ctx)
	return buffers / float64(rows), err
}
