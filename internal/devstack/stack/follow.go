package stack

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"
)

// follow buys the jobs, lets the clock tick and shows what happens until every
// job is finished or the time is up; then it reports.
func (s *stack) follow(ctx context.Context) error {
	bounded, cancel := context.WithTimeout(ctx, s.Bound)
	defer cancel()
	s.clock.start()
	began := time.Now()
	err := s.watch(bounded, began)
	if ctx.Err() != nil {
		return ctx.Err()
	}
	if errors.Is(err, context.DeadlineExceeded) {
		err = fmt.Errorf("not every job was finished within %s", s.Bound)
	}
	s.clock.rest(ctx)
	return errors.Join(err, s.report(ctx, time.Since(began)))
}

// watch has the jobs bought and returns nil once all are and none is pending.
func (s *stack) watch(ctx context.Context, began time.Time) error {
	ctx, cancel := context.WithCancel(ctx)
	var buying sync.WaitGroup
	defer buying.Wait()
	defer cancel()
	bought := make(chan error, 1)
	buying.Go(func() { bought <- s.buyer.buy(ctx, s.Jobs, s.Buying) })
	all := false
	ticker := time.NewTicker(lookEvery)
	defer ticker.Stop()
	for {
		select {
		case err := <-bought:
			if all = true; err != nil {
				return err
			}
		case <-ticker.C:
		case <-ctx.Done():
			return ctx.Err()
		}
		seen, err := s.db.look(ctx)
		if err != nil {
			return err
		}
		s.screen.show(seen.line(time.Since(began)))
		if all && seen.pending == 0 {
			s.screen.settle(seen.line(time.Since(began)))
			return nil
		}
		if err := s.clock.trouble(); err != nil {
			return err
		}
	}
}
