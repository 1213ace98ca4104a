package simulation_test

import (
	"testing"
	"testing/synctest"
	"time"

	"sumepoller/internal/bench/simulation"
)

var (
	threeMinutes = []time.Duration{3 * time.Minute}
	mixed        = []time.Duration{time.Minute, 3 * time.Minute, 8 * time.Minute, 20 * time.Minute}
)

func run(t *testing.T, jobs int, renders []time.Duration, fixed time.Duration) simulation.Result {
	t.Helper()
	r, err := simulation.Run(simulation.Day{
		Jobs: jobs, Renders: renders, Fixed: fixed,
		TickMin: time.Minute, TickMax: 119 * time.Second, Follow: 72 * time.Hour, Seed: 1,
	})
	if err != nil {
		t.Fatalf("a run failed: %v", err)
	}
	return r
}

func TestDay_AllFinishedWithinLimits(t *testing.T) {
	for name, day := range map[string]struct {
		jobs    int
		renders []time.Duration
		within  time.Duration
	}{
		"50 mixed":             {50, mixed, 2 * time.Minute},
		"500 of three minutes": {500, threeMinutes, 2 * time.Minute},
		"2,000 mixed":          {2000, mixed, 2 * time.Hour},
		"5,000 mixed":          {5000, mixed, 36 * time.Hour},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				r := run(t, day.jobs, day.renders, 0)
				if r.Settled != day.jobs || r.ReadsFirst > 10_000 || r.Refused > 0 || r.Delay(1) > day.within {
					t.Errorf("settled %d of %d, %d reads on the first day, %d refused, the last %v late; want all within %v",
						r.Settled, day.jobs, r.ReadsFirst, r.Refused, r.Delay(1), day.within)
				}
			})
		})
	}
}

func TestDay_ModestLoadLikeFixedInterval(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		planned := run(t, 500, threeMinutes, 0)
		fixed := run(t, 500, threeMinutes, 15*time.Second)
		if planned.Delay(0.5) > 15*time.Second || planned.ReadsPerJob() > fixed.ReadsPerJob() {
			t.Errorf("p50 %v with %.3f reads a job; want at most 15 s and %.3f",
				planned.Delay(0.5), planned.ReadsPerJob(), fixed.ReadsPerJob())
		}
	})
}
