package stack

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"
)

const (
	lookEvery = 250 * time.Millisecond
	showEvery = 8 // looks
)

// follow buys the jobs, lets the clock tick and shows the progress until every
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

// watch buys the jobs and returns nil once none is pending.
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
	for look := 0; ; look++ {
		select {
		case err := <-bought:
			if all = true; err != nil {
				return err
			}
		case <-ticker.C:
		case <-ctx.Done():
			return ctx.Err()
		}
		p, err := s.db.progress(ctx)
		if err != nil {
			return err
		}
		done := all && p.Pending == 0
		if done || look%showEvery == 0 {
			s.say("%s", p.line(time.Since(began)))
		}
		if done {
			return nil
		}
		if _, err := s.clock.sum(); err != nil {
			return err
		}
	}
}
