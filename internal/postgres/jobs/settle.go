package jobs

import (
	"context"
	"fmt"

	"sumepoller/internal/poller"
	"sumepoller/internal/postgres"
	"sumepoller/internal/postgres/statement"
)

var (
	settleSQL     = statement.Read(files, "settle")
	settleSkipSQL = statement.Read(files, "settle_skip_locked")
)

// Settle implements poller.Queue.
func (s *Store) Settle(ctx context.Context, batch []poller.Settlement) ([]poller.Result, error) {
	results := make([]poller.Result, 0, len(batch))
	for part := range parts(batch) {
		got, err := s.settlePart(ctx, part)
		results = append(results, got...)
		if err != nil {
			return results, fmt.Errorf("settle %s: %w", named(part[0].JobID, len(part)), err)
		}
	}
	return results, nil
}

// settlePart writes settlements in one statement. If the table refuses that, it
// writes them in parts.
func (s *Store) settlePart(ctx context.Context, batch []poller.Settlement) ([]poller.Result, error) {
	results, err := s.settleOnce(ctx, batch, true)
	if postgres.SQLState(err) == queueFull {
		if results, announced := s.settleOnce(ctx, batch, false); announced == nil {
			return s.explainSettled(ctx, batch, unannounced(batch, results, err)), nil
		}
	}
	switch {
	case err == nil:
		return s.explainSettled(ctx, batch, results), nil
	case !postgres.Refused(err) && (!postgres.MaybeOneRow(err) || postgres.Transient(err)):
		return nil, err
	}
	if _, err := s.settleOnce(ctx, nil, true); err != nil {
		return nil, err // even without rows: the statement itself is refused
	}
	switch {
	case len(batch) > 1:
	case postgres.Refused(err), batch[0].Class == poller.WriteRefused:
		return s.settleRefused(ctx, batch[0], err)
	default:
		return nil, err
	}
	return s.settleHalves(ctx, batch)
}

// settleHalves settles a batch that failed in two parts. If that was an error
// of the infrastructure's classes, a row counts as the cause only if other rows
// can be written.
func (s *Store) settleHalves(ctx context.Context, batch []poller.Settlement) ([]poller.Result, error) {
	half := len(batch) / 2
	first, failed := s.settlePart(ctx, batch[:half])
	if failed != nil && !postgres.MaybeOneRow(failed) {
		return first, failed
	}
	second, err := s.settlePart(ctx, batch[half:])
	switch {
	case failed != nil && err != nil:
		return first, err
	case err != nil && !postgres.MaybeOneRow(err):
		return append(first, second...), err
	case failed != nil:
		first = s.refuseAll(batch[:half], failed)
	case err != nil:
		second = s.refuseAll(batch[half:], err)
	}
	return append(first, second...), nil
}

// refuseAll returns the results of settlements that failed with the error cause.
func (s *Store) refuseAll(batch []poller.Settlement, cause error) []poller.Result {
	results := make([]poller.Result, len(batch))
	for i, one := range batch {
		results[i] = s.refuse(one.JobID, cause, poller.WriteSettle)
	}
	return results
}

// queueFull is the SQLSTATE of a commit for whose notifications the server's
// queue has no room.
const queueFull = "54000"

// unannounced adds the error that prevented the announcements to the result of
// the first finished job.
func unannounced(batch []poller.Settlement, results []poller.Result, cause error) []poller.Result {
	for i := range results {
		if results[i].State != "" {
			e := writeErrorOf(batch[i].JobID, cause, poller.WriteAnnouncement)
			results[i].Error = &e
			break
		}
	}
	return results
}

// settleRefused handles a settlement that the table refused with the error cause.
// If the cause is a value or a limit, it settles without the terminal answer.
func (s *Store) settleRefused(ctx context.Context, one poller.Settlement, cause error) ([]poller.Result, error) {
	if class := postgres.SQLState(cause)[:2]; len(one.Final) > 0 && (class == "22" || class == "54") {
		bare := one
		bare.Final = nil
		results, err := s.settlePart(ctx, []poller.Settlement{bare})
		if err == nil && results[0].State != "" {
			e := writeErrorOf(one.JobID, cause, poller.WriteFinalStatus)
			results[0].Error = &e
		}
		return results, err
	}
	return s.refuseAll([]poller.Settlement{one}, cause), nil
}

// explainSettled completes the results of settlements that raised no error.
func (s *Store) explainSettled(ctx context.Context, batch []poller.Settlement, results []poller.Result) []poller.Result {
	for i, one := range batch {
		s.explain(ctx, &results[i], one.JobID, poller.WriteSettle)
	}
	return results
}

// settleOnce runs the settle statement.
func (s *Store) settleOnce(ctx context.Context, batch []poller.Settlement, announce bool) ([]poller.Result, error) {
	k, args := settleArgs(batch)
	args["announce"] = announce
	return s.write(ctx, settleSQL, settleSkipSQL, k, args)
}
