package main

import (
	"context"
	"fmt"
	"runtime"
	"time"

	"golang.org/x/sync/errgroup"

	"sumepoller/internal/bench/simulation"
)

// fixedInterval is the interval of the poller that ours is compared with.
const fixedInterval = 15 * time.Second

// jobsADay are the loads that are simulated.
var jobsADay = []int{50, 150, 500, 1000, 1500, 2000, 3000, 5000}

// dayName is how the figures of a day begin.
func dayName(jobs int, fixed bool) string {
	if fixed {
		return fmt.Sprintf("%d a day, fixed 15 s: ", jobs)
	}
	return fmt.Sprintf("%d a day: ", jobs)
}

// detection runs whole days in simulated time: how many reads a finished job
// takes, and how soon its end is known.
func detection(ctx context.Context, s *scene) error {
	results := make([][]simulation.Result, rounds)
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(runtime.NumCPU())
	for round := range results {
		group.Go(func() (err error) {
			var days []simulation.Day
			for _, jobs := range jobsADay {
				d := simulation.Day{
					Jobs: jobs, Renders: []time.Duration{time.Minute, 3 * time.Minute, 8 * time.Minute, 20 * time.Minute},
					TickMin: time.Minute, TickMax: 119 * time.Second, Follow: 96 * time.Hour, Seed: uint64(round + 1),
				}
				days = append(days, d)
				d.Fixed = fixedInterval
				days = append(days, d)
			}
			results[round], err = run[[]simulation.Result](ctx, roleDays, days)
			return err
		})
	}
	if err := group.Wait(); err != nil {
		return err
	}
	for _, days := range results {
		for i, r := range days {
			fixed := i%2 == 1
			name := dayName(jobsADay[i/2], fixed)
			s.add(name+"reads a finished job", "", r.ReadsPerJob())
			s.add(name+"p50", "s", r.Delay(0.5).Seconds())
			s.add(name+"p99", "s", r.Delay(0.99).Seconds())
			if fixed {
				continue
			}
			if r.Settled < r.Jobs || r.Refused > 0 {
				return fmt.Errorf("%d jobs a day: %d not finished, %d reads over the limits", r.Jobs, r.Jobs-r.Settled, r.Refused)
			}
			s.add(name+"longest", "s", r.Delay(1).Seconds())
			s.add(name+"awake", "s", r.Awake.Seconds())
		}
	}
	return nil
}
