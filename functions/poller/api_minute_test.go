package main_test

import (
	"testing"
	"time"

	"sumepoller/internal/poller"
	"sumepoller/internal/sume/sumetest"
)

func TestMinuteLimit_Headers(t *testing.T) {
	t.Parallel()
	for name, headers := range map[string]string{
		"RateLimit": sumetest.HeadersPlain, "X-RateLimit": sumetest.HeadersX, "RateLimit with an epoch": sumetest.HeadersEpoch,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newStage(t)
			s.options.ReadsPerMinute, s.options.Headers = 120, headers
			s.options.Minute = 5 * time.Minute // no machine is so slow that it passes meanwhile
			s.slow(5*time.Millisecond, 50*time.Millisecond)
			s.due(t, sumetest.Plan{}, ids("job", 400)...)
			warm := s.sandbox(t, "POLL_BUDGET=20s")
			first := warm.tick(t)
			seen := s.api.Stats()
			if seen.Reads < 110 || seen.Reads > 120 || seen.Limited > 2 {
				t.Errorf("%d reads, %d of them answered 429; want 110 to 120, and at most 2", seen.Reads, seen.Limited)
			}
			if first.Stopped != poller.StoppedRateLimited || first.DueRemaining != 400-first.Polled {
				t.Errorf("summary %+v", first)
			}
			for sandbox, b := range map[string]*sandbox{"warm": warm, "cold": s.sandbox(t, "POLL_BUDGET=20s")} {
				before := s.api.Stats().Reads
				sum := b.tick(t)
				if more := s.api.Stats().Reads - before; more > 2 || sum.Stopped != poller.StoppedRateLimited {
					t.Errorf("%s: %d more reads in the same minute, summary %+v", sandbox, more, sum)
				}
			}
			s.spare(t)
			s.ended(t, map[string]int{"completed": first.Polled, "pending": 400 - first.Polled})
		})
	}
}

func TestMinuteLimit_ServersDay(t *testing.T) {
	t.Parallel()
	s := newStage(t)
	s.options.ReadsPerMinute, s.options.ReadsPerDay = 10_000, 100
	s.slow(5*time.Millisecond, 50*time.Millisecond)
	s.due(t, sumetest.Plan{}, ids("job", 300)...)
	b := s.sandbox(t, "POLL_BUDGET=20s")
	if got, seen := b.tick(t), s.api.Stats(); got.Stopped != poller.StoppedRateLimited || seen.Reads < 90 || seen.Reads > 102 || seen.Limited > 2 {
		t.Errorf("%d reads, %d of them answered 429, summary %+v", seen.Reads, seen.Limited, got)
	}
	before := s.api.Stats().Reads
	b.times(t, 3)
	if more := s.api.Stats().Reads - before; more > 2 {
		t.Errorf("%d more reads by a warm sandbox, want at most 2", more)
	}
	s.spare(t)
}

func TestMinuteLimit_Wait(t *testing.T) {
	t.Parallel()
	s := newStage(t)
	s.options.ReadsPerMinute, s.options.Minute = 40, 4*time.Second
	s.slow(0, 20*time.Millisecond)
	s.due(t, sumetest.Plan{}, ids("job", 100)...)
	got := s.sandbox(t, "POLL_BUDGET=30s").tick(t)
	if seen := s.api.Stats(); seen.Limited > 4 || got.Finished["completed"] != 100 {
		t.Errorf("%d answers of 429, summary %+v", seen.Limited, got)
	}
	s.spare(t)
}

// The sandbox's own limit holds in any 60 s, also across two runs.
func TestMinuteLimit_Sandbox(t *testing.T) {
	t.Parallel()
	s := newStage(t)
	s.options.Headers = sumetest.HeadersNone
	s.slow(0, 20*time.Millisecond)
	b := s.limited(t, 100*time.Second, "SUME_READS_PER_MINUTE=60", "POLL_BUDGET=80s")
	s.due(t, sumetest.Plan{}, ids("a", 30)...)
	if got := b.tick(t); got.Polled != 30 || got.Stopped != poller.StoppedDrained {
		t.Errorf("first run %+v", got)
	}
	s.due(t, sumetest.Plan{}, ids("b", 85)...)
	answer := b.begin(t, "")
	result, err := answer()
	if err != nil || result.Failure != nil {
		t.Fatalf("error %v, answer %s", err, result.Body())
	}
	if got := summary(t, string(result.Payload)); got.Polled != 85 {
		t.Errorf("second run %+v, want the rest of the minute's reads, and 55 in the next", got)
	}
	s.due(t, sumetest.Plan{}, ids("c", 5)...)
	if got := b.tick(t); got.Polled != 5 || got.ElapsedSeconds > 20 {
		t.Errorf("third run %+v", got)
	}
	times := s.api.Times()
	for i := 60; i < len(times); i++ {
		if apart := times[i].Sub(times[i-60]); apart < time.Minute {
			t.Fatalf("reads %d and %d came within %v", i-60, i, apart)
		}
	}
	s.spare(t)
}
