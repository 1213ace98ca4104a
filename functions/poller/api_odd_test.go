package main_test

import (
	"maps"
	"net/http"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"sumepoller/internal/sume/sumetest"
)

// An odd answer is an error of that row only. 200 good answers beside them are
// settled.
func TestRead_OddAnswers(t *testing.T) {
	t.Parallel()
	elsewhere, visits := another(t)
	s := newStage(t)
	odd := oddities(elsewhere)
	good := ids("good", 200)
	s.due(t, sumetest.Plan{}, mixed(good, slices.Sorted(maps.Keys(odd)))...)
	for name, o := range odd {
		s.api.SetFault(name, o.fault)
	}
	got := s.sandbox(t, "POLL_BUDGET=9s", "SUME_REQUEST_TIMEOUT=3s").tick(t)
	s.modest(t)

	rows, seen := s.entries(t), s.api.Stats()
	for _, name := range good {
		if rows[name].State != "completed" {
			t.Errorf("%s is %+v", name, rows[name])
		}
	}
	for name, o := range odd {
		o.check(t, name, rows[name])
		if reads := seen.Jobs[name].Reads; reads < 1 || o.class != "" && reads > 2 {
			t.Errorf("%s: %d reads", name, reads)
		}
	}
	if visits.Load() > 0 {
		t.Errorf("%d requests followed an address in an answer", visits.Load())
	}
	if diff := cmp.Diff(map[string]string{host(t, s.url): plantedKey}, seen.Hosts); diff != "" {
		t.Errorf("hosts that saw the key (-want +got):\n%s", diff)
	}
	if got.LostLeases+got.Released > 0 || seen.Overlapping > 0 {
		t.Errorf("%d reads at once with another, summary %+v", seen.Overlapping, got)
	}
	s.zero(t, held)
}

// check compares the row with what the odd answer must lead to.
func (o oddity) check(t *testing.T, name string, row entry) {
	t.Helper()
	switch {
	case o.state != "":
		if row.State != o.state || row.Errors > 0 || row.Error != "" {
			t.Errorf("%s: %+v, want %s", name, row, o.state)
		}
	case o.class != "":
		if row.State != "pending" || row.Errors != 1 || !row.Failing || !strings.HasPrefix(row.Error, o.class) || !row.within(o.delay, 0.25) {
			t.Errorf("%s: %+v, want pending, %q, next read after %v", name, row, o.class, o.delay)
		}
	default:
		if row.State != "pending" || row.Errors > 0 || row.Failing || row.Error != "" || !row.within(o.delay, 0.10) {
			t.Errorf("%s: %+v, want pending, next read after %v", name, row, o.delay)
		}
	}
}

// mixed puts one of the few behind every two of the many.
func mixed(many, few []string) []string {
	var all []string
	for i, name := range many {
		all = append(all, name)
		if i%2 == 1 && i/2 < len(few) {
			all = append(all, few[i/2])
		}
	}
	return all
}

// another is a host that counts the requests it gets.
func another(t *testing.T) (url string, visits *atomic.Int64) {
	t.Helper()
	visits = new(atomic.Int64)
	server, err := sumetest.Listen(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { visits.Add(1) }))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(server.Close)
	return server.URL + "/v1/jobs/elsewhere/status", visits
}

func TestMemory_LargeAnswers(t *testing.T) {
	t.Parallel()
	const start = `{"terminal":true,"sume_status":"completed","note":"`
	s := newStage(t)
	s.due(t, sumetest.Plan{}, ids("job", 160)...)
	s.api.SetFault("", sumetest.Fault{
		Body:  start + strings.Repeat("x", 1<<20-len(start)-2) + `"}`,
		Delay: 100 * time.Millisecond, // all in flight together
	})
	got := s.sandbox(t).tick(t)
	s.modest(t)
	if most := s.api.Stats().MaxInFlight; most < 60 {
		t.Errorf("%d reads were in flight at most, want about 64", most)
	}
	s.ended(t, map[string]int{"completed": 160})
	if got.Finished["completed"] != 160 || got.Polled != 160 {
		t.Errorf("summary %+v", got)
	}
}
