package poller

import (
	"strings"
	"testing"
	"time"
)

func TestRun_Settled(t *testing.T) {
	refusal := &WriteError{JobID: "job_1", SQLState: "23514", Write: WriteSettle}
	for name, c := range map[string]struct {
		settlement Settlement
		results    []Result
		after      time.Duration // since the claim
		want       func(*Summary)
		again      *Settlement // waits to be written then
		log        string
	}{
		"finished": {
			Settlement{Polled: true},
			[]Result{{State: "completed"}},
			0,
			func(s *Summary) { s.Polled, s.Finished["completed"] = 1, 1 }, nil, "job finished",
		},
		"rescheduled": {
			Settlement{Polled: true, Delay: time.Minute},
			[]Result{{}},
			0,
			func(s *Summary) { s.Polled, s.Rescheduled = 1, 1 }, nil, "",
		},
		"an error": {
			Settlement{Class: Timeout, Error: "timeout", Delay: time.Minute},
			[]Result{{}},
			0,
			func(s *Summary) { s.Errors[Timeout] = 1 }, nil, "job failing",
		},
		"no result":  {Settlement{}, nil, 0, func(*Summary) {}, nil, ""},
		"lease lost": {Settlement{}, []Result{{Outcome: LeaseLost}}, 0, func(s *Summary) { s.LostLeases = 1 }, nil, ""},
		"missing":    {Settlement{}, []Result{{Outcome: Missing}}, 0, func(s *Summary) { s.LostLeases = 1 }, nil, "not found"},
		"locked":     {Settlement{}, []Result{{Outcome: Locked}}, 0, func(*Summary) {}, &Settlement{}, ""},
		"locked too long": {
			Settlement{}, []Result{{Outcome: Locked}}, 30 * time.Second, func(s *Summary) { s.LostLeases = 1 }, nil, "",
		},
		"locked error": {Settlement{Class: WriteRefused}, []Result{{Outcome: Locked}}, 0, func(*Summary) {}, &Settlement{Class: WriteRefused}, ""},
		"locked error too long": {
			Settlement{Class: WriteRefused}, []Result{{Outcome: Locked}}, 30 * time.Second, func(s *Summary) { s.Errors[WriteRefused] = 1 }, nil, "",
		},
		"refused":       {Settlement{}, []Result{{Outcome: Refused, Error: refusal}}, 0, func(*Summary) {}, &Settlement{Class: WriteRefused}, "23514"},
		"error refused": {Settlement{Class: WriteRefused}, []Result{{Outcome: Refused, Error: refusal}}, 0, func(s *Summary) { s.Errors[WriteRefused] = 1 }, nil, "23514"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r, l, log := newTestRun(t, 1)
			now := noon.Add(c.after)
			c.settlement.Lease, c.settlement.JobID = l.id, "job_1"
			r.writer.settling = 1
			r.settled(now, []Settlement{c.settlement}, c.results)
			want := NewSummary("run_1", ModeScheduled)
			c.want(&want)
			if got := r.sum.JSON(); got != want.JSON() {
				t.Errorf("got %s, want %s", got, want.JSON())
			}
			if (c.again != nil) != (len(r.writer.settlements) == 1) || c.again != nil && r.writer.settlements[0].Class != c.again.Class {
				t.Errorf("%+v waits, want %+v", r.writer.settlements, c.again)
			}
			if (len(r.leases) == 0) == (c.again != nil) || r.writer.settling != 0 || !r.seeker.wroteAt.Equal(now) {
				t.Errorf("%d leases, %d batches under way, written at %v", len(r.leases), r.writer.settling, r.seeker.wroteAt)
			}
			if c.settlement.Delay > 0 && !r.seeker.dueAt.Equal(now.Add(c.settlement.Delay)) {
				t.Errorf("due at %v, want after the settlement's delay", r.seeker.dueAt)
			}
			if !strings.Contains(log.String(), c.log) || c.log == "" && log.Len() > 0 {
				t.Errorf("log %s, want %q", log, c.log)
			}
		})
	}
}

func TestRun_RetryPause(t *testing.T) {
	r, l, _ := newTestRun(t, 2)
	r.settled(noon, []Settlement{{Lease: l.id}}, []Result{{Outcome: Locked}})
	r.released(noon, []Release{{Lease: l.id}}, []Result{{Outcome: Locked}})
	if want := noon.Add(100 * time.Millisecond); !r.writer.settleFrom.Equal(want) || !r.writer.releaseFrom.Equal(want) {
		t.Errorf("tried again at %v and %v, want after 100 ms", r.writer.settleFrom, r.writer.releaseFrom)
	}
	r.deadlines.writes = noon.Add(time.Second)
	if r.mayRetry(noon, l.id) {
		t.Error("a locked row is tried again in the last second")
	}
}

func TestRun_Released(t *testing.T) {
	refusal := &WriteError{JobID: "job_1", SQLState: "23514", Write: WriteRelease}
	for name, c := range map[string]struct {
		release Release
		results []Result
		after   time.Duration
		want    func(*Summary)
		reads   int // of the day, then
		again   bool
		log     string
	}{
		"unread":          {Release{Unread: true}, []Result{{}}, 0, func(s *Summary) { s.Released = 1 }, 9, false, ""},
		"read":            {Release{}, []Result{{}}, 0, func(s *Summary) { s.Released = 1 }, 10, false, ""},
		"no result":       {Release{Unread: true}, nil, 0, func(*Summary) {}, 10, false, ""},
		"locked":          {Release{}, []Result{{Outcome: Locked}}, 0, func(*Summary) {}, 10, true, ""},
		"locked too long": {Release{}, []Result{{Outcome: Locked}}, 30 * time.Second, func(s *Summary) { s.LostLeases = 1 }, 10, false, ""},
		"lease lost":      {Release{}, []Result{{Outcome: LeaseLost}}, 0, func(s *Summary) { s.LostLeases = 1 }, 10, false, ""},
		"missing":         {Release{}, []Result{{Outcome: Missing}}, 0, func(s *Summary) { s.LostLeases = 1 }, 10, false, "not found"},
		"refused": {
			Release{}, []Result{{Outcome: Refused, Error: refusal}}, 0, func(s *Summary) { s.Errors[WriteRefused] = 1 }, 10, false, "23514",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r, l, log := newTestRun(t, 1)
			c.release.Lease, c.release.JobID = l.id, "job_1"
			now := noon.Add(c.after)
			r.released(now, []Release{c.release}, c.results)
			want := NewSummary("run_1", ModeScheduled)
			c.want(&want)
			if got := r.sum.JSON(); got != want.JSON() || r.quota.day.Reads != c.reads {
				t.Errorf("got %s and %d reads, want %s and %d", got, r.quota.day.Reads, want.JSON(), c.reads)
			}
			if c.again != (len(r.writer.releases) == 1) || c.again != (len(r.leases) == 1) || !r.seeker.wroteAt.Equal(now) {
				t.Errorf("%d releases wait under %d leases", len(r.writer.releases), len(r.leases))
			}
			if want.Released > 0 && !r.seeker.dueAt.Equal(now) {
				t.Errorf("due at %v, want at once", r.seeker.dueAt)
			}
			if !strings.Contains(log.String(), c.log) || c.log == "" && log.Len() > 0 {
				t.Errorf("log %s, want %q", log, c.log)
			}
		})
	}
}
