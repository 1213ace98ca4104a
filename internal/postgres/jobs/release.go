package jobs

import (
	"context"
	"fmt"

	"sumepoller/internal/poller"
	"sumepoller/internal/postgres"
	"sumepoller/internal/postgres/statement"
)

var (
	releaseSQL     = statement.Read(files, "release")
	releaseSkipSQL = statement.Read(files, "release_skip_locked")
)

// Release implements poller.Queue. It gives no reads back if date is empty, or if
// the store's claims do not count them.
func (s *Store) Release(ctx context.Context, date string, rows []poller.Release) ([]poller.Result, error) {
	if len(rows) == 0 {
		return nil, nil
	}
	results, err := s.releasePart(ctx, date, rows)
	s.progress.sweepNext() // the rows are due again, below the bound
	if err != nil {
		return nil, fmt.Errorf("release %s: %w", named(rows[0].JobID, len(rows)), err)
	}
	return results, nil
}

// releasePart releases rows in one statement. If the table refuses that, it
// releases them in parts.
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
		return nil, err // even without rows: the statement itself is refused
	}
	if len(rows) == 1 {
		return []poller.Result{s.refuse(rows[0].JobID, err, poller.WriteRelease)}, nil
	}
	first, err := s.releasePart(ctx, date, rows[:len(rows)/2])
	if err != nil {
		return nil, err
	}
	second, err := s.releasePart(ctx, date, rows[len(rows)/2:])
	return append(first, second...), err
}

// releaseOnce runs the release statement.
func (s *Store) releaseOnce(ctx context.Context, date string, rows []poller.Release) ([]poller.Result, error) {
	n := len(rows)
	k, unread := keys{make([]string, n), make([]string, n), make([]string, n), make([]bool, n)}, make([]bool, n)
	for i, row := range rows {
		k.ids[i], k.leases[i], k.states[i], unread[i] = cleanText(row.JobID), leaseText(row.Lease), poller.StatePending, row.Unread
	}
	return s.write(ctx, releaseSQL, releaseSkipSQL, k, statement.Args{
		"ids": k.ids, "leases": k.leases, "states": k.states, "unread": unread, "day": date, "counted": s.progress.counted(),
	})
}
