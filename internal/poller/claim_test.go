package poller

import (
	"strings"
	"testing"
	"time"
)

func TestRun_Claimed(t *testing.T) {
	jobs := []Job{{ID: "job_1"}, {ID: "job_2"}}
	for name, c := range map[string]struct {
		request  ClaimRequest
		got      Claimed
		mustLook bool
		reads    int // of the day
	}{
		"as asked":          {ClaimRequest{Limit: 2, PaceLine: 20}, Claimed{Jobs: jobs, Day: Day{Reads: 12}}, false, 12},
		"fewer":             {ClaimRequest{Limit: 3, PaceLine: 20}, Claimed{Jobs: jobs, Day: Day{Reads: 19}}, true, 19},
		"fewer by quota":    {ClaimRequest{Limit: 3, PaceLine: 20}, Claimed{Jobs: jobs, Day: Day{Reads: 20}}, false, 20},
		"one read left":     {ClaimRequest{Limit: 3, PaceLine: 0}, Claimed{Day: Day{Reads: 0}}, false, 0},
		"fewer, no limit":   {ClaimRequest{Limit: 3, PaceLine: -1}, Claimed{Jobs: jobs, Day: Day{Reads: 99}}, true, 10},
		"a row was refused": {ClaimRequest{Limit: 3, PaceLine: -1}, Claimed{Jobs: jobs, Refused: []WriteError{{JobID: "job_3"}}}, true, 10},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r, _, log := newTestRun(t, 1)
			r.stop(StoppedBudget) // so that no read starts
			l := r.leases.add(noon.Add(30 * time.Second))
			r.claimed(noon, c.request, l, c.got)
			if r.seeker.mustLook != c.mustLook || r.quota.day.Reads != c.reads || !r.seeker.slotFreeAt.Equal(noon) {
				t.Errorf("must look %v after %d reads, want %v after %d", r.seeker.mustLook, r.quota.day.Reads, c.mustLook, c.reads)
			}
			if r.sum.Claimed != len(c.got.Jobs) || r.sum.Errors[WriteRefused] != len(c.got.Refused) || strings.Contains(log.String(), "job_3") != (len(c.got.Refused) > 0) {
				t.Errorf("got %s and log %s", r.sum.JSON(), log)
			}
		})
	}
}

func TestRun_ClaimedAboveThePaceLine(t *testing.T) {
	r, _, _ := newTestRun(t, 1)
	r.stop(StoppedBudget)
	r.minute.inFlight = 64
	r.claimed(noon, ClaimRequest{Limit: 1, PaceLine: 501}, r.leases.add(noon), Claimed{Jobs: []Job{{}}, Day: Day{Reads: 501}})
	if r.quota.aboveAt.IsZero() || !r.seeker.slotFreeAt.IsZero() || r.sum.ReadsToday != 501 {
		t.Errorf("got %+v and a free slot at %v, want a read above the line and no free slot", r.quota, r.seeker.slotFreeAt)
	}
}

func TestRun_Allowed(t *testing.T) {
	for name, c := range map[string]struct {
		change func(*run)
		want   allowance
	}{
		"a first read":     {func(*run) {}, allowance{rows: 1, reason: StoppedDailyLimit}},
		"slots":            {func(r *run) { r.minute.update(noon, nil); r.minute.inFlight = 60 }, allowance{rows: 4, reason: StoppedDailyLimit}},
		"no slot":          {func(r *run) { r.minute.update(noon, nil); r.minute.inFlight = 64 }, allowance{reason: StoppedRateLimited}},
		"minute limit":     {func(r *run) { r.minute.refused(noon, time.Minute, nil) }, allowance{at: noon.Add(time.Minute), reason: StoppedRateLimited}},
		"no daily limit":   {func(r *run) { r.quota.limit = 0; r.minute.update(noon, nil) }, allowance{rows: 64}},
		"a few of the day": {func(r *run) { r.minute.update(noon, nil); r.quota.day.Reads = 190 }, allowance{rows: 10, reason: StoppedDailyLimit}},
		"the pace line": {
			func(r *run) { r.minute.update(noon, nil); r.quota.day.Reads = 1000 },
			allowance{at: noon.Add(24 * time.Hour), reason: StoppedDailyLimit},
		},
		"a limit of one read": {
			func(r *run) { r.minute.update(noon, nil); r.quota.limit, r.quota.day.Reads = 1, 0 },
			allowance{at: noon.Add(24 * time.Hour), reason: StoppedDailyLimit},
		},
		"too much to write": {func(r *run) { r.writer.bytes = 8 << 20 }, allowance{}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r, _, _ := newTestRun(t, 1)
			c.change(r)
			got := r.allowed(noon)
			if got.rows != c.want.rows || got.reason != c.want.reason || !got.at.Equal(c.want.at) {
				t.Errorf("got %+v, want %+v", got, c.want)
			}
		})
	}
}
