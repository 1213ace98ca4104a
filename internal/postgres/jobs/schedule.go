package jobs

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"sumepoller/internal/poller"
	"sumepoller/internal/postgres"
	"sumepoller/internal/postgres/statement"
)

var (
	nextDueSQL = statement.Read(files, "next_due")
	daySQL     = statement.Read(files, "day")
	backlogSQL = statement.Read(files, "backlog")
)

// NextDue implements poller.Schedule. Rows that the table refuses to change do
// not count: no claim asks for them.
func (s *Store) NextDue(ctx context.Context, own []poller.LeaseID) (in time.Duration, ok bool, err error) {
	leases := make([]string, len(own))
	for i, id := range own {
		leases[i] = leaseText(id)
	}
	args := statement.Args{"own_leases": leases, "longest_lease": s.progress.longestLease(), "excluded": s.progress.excludedIDs()}
	err = postgres.Retry(ctx, func() error {
		rows, err := s.pool.Query(ctx, nextDueSQL, args)
		if err != nil {
			return err
		}
		found, err := pgx.CollectRows(rows, pgx.RowTo[int64])
		if ok = len(found) > 0; ok {
			in = duration(found[0])
		}
		return err
	})
	if err != nil {
		return 0, false, fmt.Errorf("find out when the next job is due: %w", err)
	}
	return in, ok, nil
}

// Today implements poller.Schedule.
func (s *Store) Today(ctx context.Context) (poller.Day, error) {
	var day poller.Day
	err := postgres.Retry(ctx, func() error {
		var elapsed int64
		err := s.pool.QueryRow(ctx, daySQL).Scan(&day.Date, &elapsed, &day.Reads)
		day.Elapsed = duration(elapsed)
		return err
	})
	if err != nil {
		return poller.Day{}, fmt.Errorf("read the reads of today: %w", err)
	}
	return day, nil
}

// Backlog implements poller.Schedule. It needs only the right to SELECT.
func (s *Store) Backlog(ctx context.Context) (poller.Backlog, error) {
	var b poller.Backlog
	args := statement.Args{"longest_lease": s.progress.longestLease()}
	err := postgres.Retry(ctx, func() error {
		var due, pending int64
		err := s.pool.QueryRow(ctx, backlogSQL, args).
			Scan(&b.Pending, &b.Due, &b.Failing, &due, &pending, &b.StuckSubmissions, &b.ReadsToday)
		b.OldestDue, b.OldestPending = duration(due), duration(pending)
		return err
	})
	if err != nil {
		return poller.Backlog{}, fmt.Errorf("count the backlog: %w", err)
	}
	return b, nil
}
