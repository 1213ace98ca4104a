package stack

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// follow buys the jobs, lets the clock tick and shows what happens until every
// job is finished or the time is up; then it reports.
func (s *stack) follow(ctx context.Context) error {
	bounded, cancel := context.WithTimeout(ctx, s.Bound)
	defer cancel()
	bought := make(chan error, 1)
	go func() { bought <- s.buyer.buy(bounded, s.Jobs, s.Buying) }()
	s.clock.start()

	began := time.Now()
	err := s.watch(bounded, bought, began)
	if ctx.Err() != nil {
		return ctx.Err()
	}
	if errors.Is(err, context.DeadlineExceeded) {
		err = fmt.Errorf("not every job was finished within %s", s.Bound)
	}
	s.clock.rest(ctx)
	return errors.Join(err, s.report(ctx, time.Since(began)))
}

// watch returns nil once all jobs are bought and none is pending. The buyer
// has returned when it does.
func (s *stack) watch(ctx context.Context, bought chan error, began time.Time) error {
	ctx, cancel := context.WithCancel(ctx)
	buying := true
	defer func() {
		cancel()
		if buying {
			_ = <-bought
		}
	}()
	ticker := time.NewTicker(lookEvery)
	defer ticker.Stop()
	for {
		select {
		case err := <-bought:
			if buying = false; err != nil {
				return err
			}
			bought = nil
		case <-ticker.C:
		case <-ctx.Done():
			return ctx.Err()
		}
		seen, err := s.db.look(ctx)
		if err != nil {
			return err
		}
		s.screen.show(seen.line(time.Since(began)))
		if !buying && seen.pending == 0 {
			s.screen.settle(seen.line(time.Since(began)))
			return nil
		}
		if err := s.clock.trouble(); err != nil {
			return err
		}
	}
}
