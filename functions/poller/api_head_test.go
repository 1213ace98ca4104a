package main_test

import (
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"sumepoller/internal/poller"
	"sumepoller/internal/sume/sumetest"
)

// Rows that are dead at Sume and have the oldest due times must not hold up the
// rows behind them.
func TestFairness_DeadRowsAtTheHead(t *testing.T) {
	t.Parallel()
	for name, refused := range map[string]int{"the next answers 403": 1, "the next 25 answer 403": 25} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newStage(t)
			gone, forbidden := ids("a_gone", 25), ids("b_forbidden", refused)
			s.due(t, sumetest.Plan{}, slices.Concat(gone, forbidden, ids("c_good", 50))...)
			for _, id := range gone {
				s.api.SetFault(id, sumetest.Fault{Status: 404})
			}
			for _, id := range forbidden {
				s.api.SetFault(id, sumetest.Fault{Status: 403})
			}
			got := s.sandbox(t, "POLL_BUDGET=8s").tick(t)
			s.ended(t, map[string]int{"completed": 50, "pending": 25 + refused})
			if got.Stopped != poller.StoppedDrained || got.Errors[poller.HTTP4xx] != 25+refused {
				t.Errorf("summary %+v", got)
			}
			for id, row := range s.entries(t) {
				want := map[byte]string{'a': "http_4xx 404", 'b': "http_4xx 403"}[id[0]]
				if want != "" && (row.Errors != 1 || !strings.HasPrefix(row.Error, want) || !row.within(backoff, 0.25)) {
					t.Errorf("%s: %+v, want %q", id, row, want)
				}
			}
			s.zero(t, held)
		})
	}
}

func TestKey_FiveRowsForbidden(t *testing.T) {
	t.Parallel()
	s := newStage(t)
	s.due(t, sumetest.Plan{}, ids("job", 60)...)
	s.api.SetFault("", sumetest.Fault{Status: 403})
	b := s.sandbox(t, "POLL_BUDGET=8s")
	line, _ := b.fails(t, poller.KindUnauthorized)
	if !strings.Contains(line, "403") {
		t.Errorf("error %q", line)
	}
	s.spare(t)
	s.api.SetFault("")
	b.tick(t)
	s.ended(t, map[string]int{"completed": 60})
}

func TestRead_EscapedIDs(t *testing.T) {
	t.Parallel()
	s := newStage(t)
	sent := []string{
		"a/b", "a%2Fb", "a%252Fb", "a?b", "a#b", "a b", " a ", "a+b", "a&b=c", "a;b", `a\b`, `a"b`, "a'b", "a:b", "%", "%zz",
		"../a", "a/..", "a/../b", "...", "~", "*", "umlaut_äöüß", "日本語", "é", "e\u0301", "<a>", strings.Repeat("a", 300),
	}
	unsent := []string{".", "..", "a\nb", "a\r\nHost: b", "a\tb", "\x01", "a\x7f", "a\u0085b", " ", "\u00a0"}
	s.due(t, sumetest.Plan{}, slices.Concat(sent, unsent)...)
	s.sandbox(t, "POLL_BUDGET=8s").tick(t)

	seen, rows := s.api.Stats(), s.entries(t)
	want, got := map[string]string{}, map[string]string{}
	for _, id := range sent {
		want[id] = "/v1/jobs/" + url.PathEscape(id) + "/status"
		if rows[id].State != "completed" || seen.Jobs[id].Reads != 1 {
			t.Errorf("%q: %d reads, %+v", id, seen.Jobs[id].Reads, rows[id])
		}
	}
	for id, job := range seen.Jobs {
		if job.Reads > 0 {
			got[id] = job.Path
		}
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("paths that were read (-want +got):\n%s", diff)
	}
	if paths := slices.Compact(slices.Sorted(maps.Values(got))); len(paths) != len(sent) {
		t.Errorf("%d paths for %d ids", len(paths), len(sent))
	}
	if seen.Strays > 0 || seen.Reads != len(sent) {
		t.Errorf("%d requests went to other paths, %d reads", seen.Strays, seen.Reads)
	}
	for _, id := range unsent {
		row := rows[id]
		if row.State != "pending" || row.Errors != 1 || !strings.HasPrefix(row.Error, "malformed job id") || !row.within(backoff, 0.25) {
			t.Errorf("%q: %+v", id, row)
		}
	}
	s.zero(t, `SELECT count(*) FROM video_jobs WHERE state = 'pending' AND polls > 0`)
	s.zero(t, held)
}

// Retry-After is followed if it is a number of seconds or a date. It never shortens
// the back-off.
func TestRead_RetryAfter(t *testing.T) {
	t.Parallel()
	s := newStage(t)
	date := time.Now().UTC().Truncate(time.Second)
	in := func(d time.Duration) map[string]string {
		return map[string]string{"Retry-After": date.Add(d).Format(http.TimeFormat), "Date": date.Format(http.TimeFormat)}
	}
	after := func(value string) map[string]string { return map[string]string{"Retry-After": value} }
	for id, test := range map[string]struct {
		header map[string]string
		least  time.Duration // of the wait
		share  float64       // how much more it may be
	}{
		"seconds":                 {after("120"), 2 * time.Minute, 0},
		"below the floor":         {after("1"), backoff, 0.25},
		"zero":                    {after("0"), backoff, 0.25},
		"past a day":              {after("999999999"), 24 * time.Hour, 0},
		"past any number":         {after(strings.Repeat("9", 40)), 24 * time.Hour, 0},
		"negative":                {after("-5"), backoff, 0.25},
		"a fraction":              {after("1.5"), backoff, 0.25},
		"junk behind digits":      {after("120junk"), backoff, 0.25},
		"empty":                   {after(""), backoff, 0.25},
		"two in one":              {after("120, 120"), backoff, 0.25},
		"a date":                  {in(5 * time.Minute), 5 * time.Minute, 0},
		"a date that has passed":  {in(-5 * time.Minute), backoff, 0.25},
		"a date by another clock": {map[string]string{"Retry-After": "Sun, 06 Nov 1994 08:54:37 GMT", "Date": "Sun, 06 Nov 1994 08:49:37 GMT"}, 5 * time.Minute, 0},
	} {
		s.due(t, sumetest.Plan{}, id)
		s.api.SetFault(id, sumetest.Fault{Status: 408, Header: test.header})
		defer func() {
			if row := s.entries(t)[id]; row.Errors != 1 || !row.within(test.least, test.share) {
				t.Errorf("%s: %+v, want a wait of %v", id, row, test.least)
			}
		}()
	}
	s.sandbox(t, "POLL_BUDGET=8s").tick(t)
	s.zero(t, held)
}
