package poller_test

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"sumepoller/internal/poller"
)

func TestDailyQuota_WholeDay(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		table := newTable()
		api := &fakeAPI{Latency: 100 * time.Millisecond, Hint: time.Second}
		midnight := time.Now()
		for i := range 50 {
			id := fmt.Sprintf("job_%02d", i)
			table.Add(id, 0)
			api.Start(id, midnight.Add(100*time.Hour))
		}
		s := defaults()
		s.ReadsPerDay = 10_000
		ticks(t, poller.New(s, quiet()), table, api, time.Minute, 24*60)
		today := 0
		var last time.Time
		for _, read := range api.Reads {
			if read.At.Before(midnight.Add(24 * time.Hour)) {
				today, last = today+1, read.At
			}
		}
		if today > 10_000 || table.ReadsTaken(midnight) != today {
			t.Errorf("read %d times, the table counted %d, the limit is 10000", today, table.ReadsTaken(midnight))
		}
		if share := last.Sub(midnight).Hours() / 24; share < 0.95 || today < 9_900 {
			t.Errorf("the last of %d reads fell at %.3f of the day, want the last twentieth", today, share)
		}
		least, most := today, 0
		for _, n := range api.Counts() {
			least, most = min(least, n), max(most, n)
		}
		if float64(most-least) > 0.2*float64(most) {
			t.Errorf("jobs were read %d to %d times", least, most)
		}
	})
}

func TestDailyQuota_BurstInIdleDay(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		table := newTable()
		api := &fakeAPI{Latency: 100 * time.Millisecond, Hint: 15 * time.Second}
		s := defaults()
		s.ReadsPerDay = 10_000
		p := poller.New(s, quiet())
		ticks(t, p, table, api, time.Minute, 8*60)
		for i := range 60 {
			id := fmt.Sprintf("job_%02d", i)
			table.Add(id, 15*time.Second)
			api.Start(id, time.Now().Add(3*time.Minute))
		}
		ticks(t, p, table, api, time.Minute, 5)
		for _, row := range table.Rows() {
			if late := row.FinishedAt.Sub(api.End(row.ID)); row.State != "completed" || late > 20*time.Second {
				t.Errorf("%s: %s %v after its end, want completed within 20 s", row.ID, row.State, late)
			}
		}
	})
}

func TestDailyQuota_TwoSandboxes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		table := newTable()
		api := &fakeAPI{Latency: 10 * time.Millisecond, Hint: time.Second}
		for i := range 50 {
			id := fmt.Sprintf("job_%02d", i)
			table.Add(id, 0)
			api.Start(id, time.Now().Add(100*time.Hour))
		}
		wait(23 * time.Hour)
		s := defaults()
		s.ReadsPerDay = 200
		one, two := poller.New(s, quiet()), poller.New(s, quiet())
		for range 40 {
			mustPass(t, one, table, api)
			mustPass(t, two, table, api)
			wait(time.Minute)
		}
		least, most := 200, 0
		for _, n := range api.Counts() {
			least, most = min(least, n), max(most, n)
		}
		if len(api.Reads) > 200 || table.ReadsTaken(time.Now()) != len(api.Reads) || most-least > 2 {
			t.Errorf("%d reads, %d counted, %d to %d a job", len(api.Reads), table.ReadsTaken(time.Now()), least, most)
		}
	})
}

func TestDailyQuota_UsedUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		table := newTable()
		api := &fakeAPI{Hint: time.Second}
		table.Add("job_1", 0)
		api.Start("job_1", time.Now().Add(100*time.Hour))
		wait(24*time.Hour - 5*time.Minute)
		s := defaults()
		s.ReadsPerDay = 3
		p := poller.New(s, quiet())
		ticks(t, p, table, api, time.Minute, 1)
		before := len(api.Reads)
		sum := mustPass(t, p, table, api)
		if before == 0 || len(api.Reads) != before || sum.Stopped != poller.StoppedDailyLimit {
			t.Errorf("%d reads, then %d, %s; want daily_limit without a read", before, len(api.Reads)-before, sum.Stopped)
		}
	})
}

// wait lets simulated time pass.
func wait(d time.Duration) { <-time.After(d) }
