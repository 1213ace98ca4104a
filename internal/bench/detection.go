package main

import (
	"context"
	"fmt"
	"runtime"
	"slices"
	"time"

	"golang.org/x/sync/errgroup"

	"sumepoller/internal/bench/report"
	"sumepoller/internal/bench/simulation"
)

// scene is a simulated day and its name in the report.
type scene struct {
	name string
	simulation.Scene
}

var (
	mixed    = []time.Duration{time.Minute, 3 * time.Minute, 8 * time.Minute, 20 * time.Minute}
	late     = [2]time.Duration{time.Minute, 119 * time.Second}
	punctual = [2]time.Duration{time.Minute, time.Minute}
)

// fixedInterval is the pollers' that ours is compared with.
const fixedInterval = 15 * time.Second

// sceneName is how figures of a day are named.
func sceneName(jobs int, renders []time.Duration, ticks [2]time.Duration, fixed time.Duration) string {
	rendered, apart, who := "mixed renders", "ticks 60 to 119 s apart", "ours"
	if len(renders) == 1 {
		rendered = fmt.Sprintf("renders of %.0f min", renders[0].Minutes())
	}
	if ticks == punctual {
		apart = "ticks 60 s apart"
	}
	if fixed > 0 {
		who = fmt.Sprintf("fixed %.0f s", fixed.Seconds())
	}
	return fmt.Sprintf("%d a day, %s, %s, %s: ", jobs, rendered, apart, who)
}

// mixedLoads are the loads of the picture; costLoads those of the table of costs.
var (
	mixedLoads = []int{50, 150, 500, 1000, 1500, 2000, 3000, 5000}
	costLoads  = []int{50, 500, 1500}
)

// scenes are the days that are simulated.
func scenes() []scene {
	var all []scene
	add := func(jobs int, renders []time.Duration, ticks [2]time.Duration) {
		for _, fixed := range []time.Duration{0, fixedInterval} {
			all = append(all, scene{sceneName(jobs, renders, ticks, fixed), simulation.Scene{
				Jobs: jobs, Renders: renders, TickMin: ticks[0], TickMax: ticks[1], Fixed: fixed, Follow: 96 * time.Hour,
			}})
		}
	}
	for _, jobs := range mixedLoads {
		add(jobs, mixed, late)
	}
	for _, jobs := range []int{50, 500, 1500, 5000} {
		add(jobs, mixed, punctual)
	}
	for _, render := range mixed {
		add(500, []time.Duration{render}, late)
	}
	for _, jobs := range costLoads {
		add(jobs, mixed[1:2], punctual)
	}
	return all
}

// detection plays whole days: what a finished job costs in reads, and how soon
// its end is known.
func detection(ctx context.Context, s *report.Section) error {
	s.Note("the loop in simulated time (testing/synctest): 10,000 reads a day and 120 a minute, the server asks for 15 s, " +
		"an answer takes 50 to 150 ms, jobs come evenly with chance over 24 hours; each value another seed. " +
		"Delay: from finished at Sume to settled. Mixed renders: 1, 3, 8 and 20 minutes in turn. " +
		"The fixed interval is the same loop, the same ticks, without the day's budget")
	s.Wide = true
	all := scenes()
	results := make([][]simulation.Result, rounds)
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(runtime.NumCPU())
	for round := range results {
		group.Go(func() (err error) {
			if ctx.Err() != nil {
				return ctx.Err()
			}
			plays := make([]simulation.Scene, len(all))
			for i := range all {
				plays[i] = all[i].Scene
				plays[i].Seed = uint64(round + 1)
			}
			results[round], err = do[[]simulation.Result](roleScene, nil, plays)
			return err
		})
	}
	if err := group.Wait(); err != nil {
		return err
	}
	for _, round := range results {
		for i, r := range round {
			takeDay(s, all[i], r)
		}
	}
	holdDays(s)
	return nil
}

func takeDay(s *report.Section, day scene, r simulation.Result) {
	s.Take(day.name+"reads a finished job", "reads", report.Count, float64(r.Reads)/float64(max(1, r.Settled)))
	s.Take(day.name+"p50", "s", report.Time, r.Delay(0.5).Seconds())
	s.Take(day.name+"p99", "s", report.Time, r.Delay(0.99).Seconds())
	s.Take(day.name+"longest", "s", report.Time, r.Delay(1).Seconds())
	s.Take(day.name+"forgotten", "jobs", report.Count, float64(r.Jobs-r.Settled))
	s.Take(day.name+"reads over the allowance", "reads", report.Count, float64(r.OverDay))
	if len(day.Renders) == 1 && day.TickMax == day.TickMin {
		s.Take(day.name+"awake", "s a day", report.Count, r.Awake.Seconds())
		s.Take(day.name+"runs", "a day", report.Count, float64(r.Runs))
	}
}

// holdDays holds the days against the targets.
func holdDays(s *report.Section) {
	for _, day := range scenes() {
		if day.Fixed == 0 {
			s.Never(day.name+"forgotten", 0)
			s.Never(day.name+"reads over the allowance", 0)
		}
	}
	three := mixed[1:2]
	for _, ticks := range [][2]time.Duration{late, punctual} {
		ours := sceneName(500, three, ticks, 0)
		s.AtMost(ours+"p50", 15)
		s.AtMost(ours+"reads a finished job", s.Median(sceneName(500, three, ticks, fixedInterval)+"reads a finished job"))
	}
	s.Never(sceneName(2000, mixed, late, 0)+"longest", (2 * time.Hour).Seconds())
	s.Never(sceneName(5000, mixed, late, 0)+"longest", (36 * time.Hour).Seconds())
	// Of the many that are zero one line each is enough.
	s.Targets = slices.DeleteFunc(s.Targets, func(t report.Target) bool { return t.Holds && t.Got == 0 })
	if most(s, "forgotten") == 0 && most(s, "reads over the allowance") == 0 {
		s.Targets = append(s.Targets, report.Target{Name: "jobs forgotten, reads over the allowance, any day of ours", Bound: "0", Holds: true})
	}
}
