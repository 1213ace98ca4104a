package poller_test

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"sumepoller/internal/poller"
	"sumepoller/internal/poller/pollertest"
)

func TestARunThatUsedUpItsMinuteWaitsOnlyWhereSomethingIsDue(t *testing.T) {
	for name, test := range map[string]struct {
		jobs    int
		stopped string
		elapsed time.Duration // at least, and at most a second more
	}{
		"nothing more is due": {jobs: 10, stopped: poller.StoppedDrained},
		"one more is due":     {jobs: 11, stopped: poller.StoppedDrained, elapsed: time.Minute},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				table := pollertest.NewTable()
				api := &pollertest.API{Latency: 50 * time.Millisecond}
				for i := range test.jobs {
					id := fmt.Sprintf("job_%02d", i)
					table.Add(id, 0)
					api.Start(id, time.Now())
				}
				s := defaults()
				s.ReadsPerMinute, s.Budget = 10, 80*time.Second
				sum := mustPass(t, poller.New(s, quiet()), table, api)
				took := time.Duration(sum.ElapsedSeconds * float64(time.Second))
				if sum.Polled != test.jobs || sum.Stopped != test.stopped || took < test.elapsed || took > test.elapsed+time.Second {
					t.Errorf("summary %+v", sum)
				}
			})
		})
	}
}
