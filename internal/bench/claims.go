package main

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"sumepoller/internal/bench/database"
	"sumepoller/internal/bench/report"
	"sumepoller/internal/poller"
	"sumepoller/internal/postgres/jobs"
)

const (
	passes      = 10
	claimRows   = 64 // a claim's
	batchClaims = 3  // claims whose rows are settled by one statement
)

// claims is what a claim costs at 10⁴, 10⁵ and 10⁶ pending rows.
func claims(ctx context.Context, s *report.Section) error {
	w, err := newWorld(ctx, s)
	if err != nil {
		return err
	}
	defer w.stop()
	s.Note("no API: claims of %d rows, settles of %d that make them due again at once, one after the other. "+
		"All rows are due. A pass goes through the 10,000 oldest rows, 2,000 of the larger tables; "+
		"the snapshot is opened after ten passes and held for ten more", claimRows, claimRows*batchClaims)
	sizes := []int{10_000, 100_000, 1_000_000}
	full := make([]*database.Database, len(sizes))
	for i, rows := range sizes {
		if full[i], err = w.db.Fresh(ctx); err != nil {
			return err
		}
		if err := full[i].Fill(ctx, rows); err != nil {
			return err
		}
	}
	for range rounds {
		for i, rows := range sizes {
			if err := claimsAt(ctx, s, full[i], rows); err != nil {
				return fmt.Errorf("%d rows: %w", rows, err)
			}
		}
		for _, when := range []string{"fresh", "after ten passes"} {
			s.Take(when+": buffers a row at 1,000,000 rows to 10,000", "times", report.Ratio,
				last(s, claimName(1_000_000, when))/last(s, claimName(10_000, when)))
		}
	}
	s.AtMost("fresh: buffers a row at 1,000,000 rows to 10,000", 1.5)
	s.AtMost("after ten passes: buffers a row at 1,000,000 rows to 10,000", 1.5)
	return nil
}

func claimName(rows int, when string) string { return fmt.Sprintf("%d rows, %s: buffers", rows, when) }

func last(s *report.Section, name string) float64 {
	values := s.Figure(name).Values
	return values[len(values)-1]
}

// claimsAt takes one table through its passes.
func claimsAt(ctx context.Context, s *report.Section, full *database.Database, rows int) error {
	d, err := full.Clone(ctx)
	if err != nil {
		return err
	}
	defer d.Drop(ctx)
	if err := d.Checkpoint(ctx); err != nil {
		return err
	}
	each := 2_000
	if rows == 10_000 {
		each = rows
	}
	walk, err := newWalk(ctx, d)
	if err != nil {
		return err
	}
	defer walk.close()
	take := func(when string, p pass) {
		s.Take(claimName(rows, when), "buffers a row claimed", report.Count, p.buffers)
		s.Take(fmt.Sprintf("%d rows, %s: execution", rows, when), "µs a row claimed", report.Time, p.execution)
	}
	for phase, when := range []string{"after ten passes", "under a snapshot"} {
		if phase == 1 {
			release, err := d.Snapshot(ctx)
			if err != nil {
				return err
			}
			defer release()
		}
		walk.newRun()
		for n := range passes {
			p, err := walk.pass(ctx, each)
			if err != nil {
				return err
			}
			if phase == 0 && n == 0 {
				take("fresh", p)
			}
			if n == passes-1 {
				take(when, p)
			}
		}
	}
	return nil
}

// snapshot is ten passes over 20,000 rows while a snapshot is held elsewhere.
func snapshot(ctx context.Context, s *report.Section) error {
	const rows = 20_000
	w, err := newWorld(ctx, s)
	if err != nil {
		return err
	}
	defer w.stop()
	s.Note("20,000 rows, each claimed and settled again in each of ten passes by one run; no API, whose share would hide the database's")
	for range rounds {
		d, err := w.db.Fresh(ctx)
		if err != nil {
			return err
		}
		if err := errors.Join(d.Fill(ctx, rows), snapshotOnce(ctx, s, d, rows)); err != nil {
			return err
		}
		d.Drop(ctx)
	}
	s.AtMost("most buffers a row of a claim, passes five to ten", 45)
	s.AtLeast("passes six to ten to passes one to five", 0.6)
	return nil
}

func snapshotOnce(ctx context.Context, s *report.Section, d *database.Database, rows int) error {
	release, err := d.Snapshot(ctx)
	if err != nil {
		return err
	}
	defer release()
	walk, err := newWalk(ctx, d)
	if err != nil {
		return err
	}
	defer walk.close()
	var took [2]time.Duration
	most := 0.0
	for n := range passes {
		p, err := walk.pass(ctx, rows)
		if err != nil {
			return err
		}
		took[n/(passes/2)] += p.took
		if n == 0 {
			s.Take("buffers a row of a claim, first pass", "buffers", report.Count, p.buffers)
		}
		if n >= passes/2-1 {
			most = max(most, p.buffers)
		}
	}
	s.Take("most buffers a row of a claim, passes five to ten", "buffers", report.Count, most)
	rate := func(d time.Duration) float64 { return float64(rows*passes/2) / d.Seconds() }
	s.Take("passes one to five", "rows/s", report.Speed, rate(took[0]))
	s.Take("passes six to ten", "rows/s", report.Speed, rate(took[1]))
	s.Take("passes six to ten to passes one to five", "times", report.Ratio, rate(took[1])/rate(took[0]))
	return nil
}

// walk claims and settles over one connection.
type walk struct {
	d     *database.Database
	pool  *pgxpool.Pool
	store *jobs.Store
}

// pass is what one pass of claims cost.
type pass struct {
	buffers   float64 // a row
	execution float64 // µs a row
	took      time.Duration
}

func newWalk(ctx context.Context, d *database.Database) (*walk, error) {
	config, err := pgxpool.ParseConfig(d.URL)
	if err != nil {
		return nil, err
	}
	config.MaxConns = 1
	pool, err := pgxpool.NewWithConfig(ctx, config)
	if err != nil {
		return nil, err
	}
	return &walk{d: d, pool: pool, store: jobs.New(pool)}, nil
}

func (w *walk) close() { w.pool.Close() }

// newRun forgets what the run before knew, as the next run does.
func (w *walk) newRun() { w.store.Reset() }

// pass claims so many rows and makes them due again.
func (w *walk) pass(ctx context.Context, rows int) (pass, error) {
	before, err := w.d.Claims(ctx)
	if err != nil {
		return pass{}, err
	}
	start := time.Now()
	var batch []poller.Settlement
	for got := 0; got < rows; {
		r := poller.ClaimRequest{Limit: min(claimRows, rows-got), For: 30 * time.Second, PaceLine: 1_000_000_000}
		_, _ = rand.Read(r.Lease[:])
		claimed, err := w.store.Claim(ctx, r)
		if err != nil {
			return pass{}, err
		}
		if len(claimed.Jobs) == 0 {
			return pass{}, fmt.Errorf("nothing due after %d of %d rows", got, rows)
		}
		got += len(claimed.Jobs)
		for _, job := range claimed.Jobs {
			batch = append(batch, poller.Settlement{JobID: job.ID, Lease: r.Lease, Polled: true, Status: "processing"})
		}
		if len(batch) < claimRows*batchClaims && got < rows {
			continue
		}
		if _, err := w.store.Settle(ctx, batch); err != nil {
			return pass{}, err
		}
		batch = batch[:0]
	}
	p := pass{took: time.Since(start)}
	after, err := w.d.Claims(ctx)
	c := after.Since(before)
	p.buffers, p.execution = c.Buffers/float64(rows), 1000*c.Execution/float64(rows)
	return p, err
}
