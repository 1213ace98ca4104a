package sume_test

import (
	"net/http"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"sumepoller/internal/poller"
	"sumepoller/internal/sume"
	"sumepoller/internal/sume/sumetest"
)

const date = "Mon, 02 Nov 2026 10:00:00 GMT"

// Retry-After can be seconds or a date.
func TestRetryAfter(t *testing.T) {
	t.Parallel()
	const none = -1
	for name, tt := range map[string]struct {
		values []string
		date   string
		want   time.Duration
	}{
		"absent":                      {nil, date, none},
		"digits":                      {[]string{"120"}, date, 2 * time.Minute},
		"zero":                        {[]string{"0"}, date, 0},
		"digits beyond any clock":     {[]string{"99999999999999999999999"}, date, sume.MaxWait},
		"date":                        {[]string{"Mon, 02 Nov 2026 10:02:00 GMT"}, date, 2 * time.Minute},
		"date in the past":            {[]string{"Mon, 02 Nov 2026 09:00:00 GMT"}, date, 0},
		"date in another century":     {[]string{"Mon, 02 Nov 2990 09:00:00 GMT"}, date, sume.MaxWait},
		"date, the answer's absent":   {[]string{"Mon, 02 Nov 2026 10:02:00 GMT"}, "", none},
		"date, the answer's unusable": {[]string{"Mon, 02 Nov 2026 10:02:00 GMT"}, "today", none},
		"old form of date":            {[]string{"Monday, 02-Nov-26 10:02:00 GMT"}, date, 2 * time.Minute},
		"negative":                    {[]string{"-5"}, date, none},
		"fraction":                    {[]string{"1.5"}, date, none},
		"junk behind":                 {[]string{"120junk"}, date, none},
		"empty":                       {[]string{""}, date, none},
		"twice":                       {[]string{"120", "60"}, date, none},
		"a list":                      {[]string{"120, 60"}, date, none},
		"signed":                      {[]string{"+5"}, date, none},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h := http.Header{"Date": {tt.date}}
			if tt.values != nil {
				h["Retry-After"] = tt.values
			}
			if got := sume.RetryAfter(h); got != tt.want {
				t.Errorf("got %v, want %v", got, tt.want)
			}
		})
	}
}

func TestStatus_Window(t *testing.T) {
	t.Parallel()
	header := func(prefix, limit, remaining, reset string) map[string]string {
		h := map[string]string{"Date": date}
		for name, value := range map[string]string{"Limit": limit, "Remaining": remaining, "Reset": reset} {
			if value != "" {
				h[prefix+name] = value
			}
		}
		return h
	}
	full := &poller.Window{Limit: 120, Remaining: 7, Reset: 30 * time.Second}
	for name, tt := range map[string]struct {
		header map[string]string
		want   *poller.Window
	}{
		"none":                    {map[string]string{"Date": date}, nil},
		"plain":                   {header("RateLimit-", "120", "7", "30"), full},
		"X-":                      {header("X-RateLimit-", "120", "7", "30"), full},
		"lower case":              {header("ratelimit-", "120", "7", "30"), full},
		"epoch":                   {header("RateLimit-", "120", "7", "1793613630"), full},
		"epoch in the past":       {header("RateLimit-", "120", "0", "1793613000"), &poller.Window{Limit: 120, Reset: time.Second}},
		"epoch in milliseconds":   {header("RateLimit-", "120", "7", "1793613630000"), &poller.Window{Limit: 120, Remaining: 7}},
		"reset now":               {header("RateLimit-", "120", "0", "0"), &poller.Window{Limit: 120, Reset: time.Second}},
		"remaining alone":         {header("RateLimit-", "", "7", ""), &poller.Window{Remaining: 7}},
		"without remaining":       {header("RateLimit-", "120", "", "30"), nil},
		"odd remaining":           {header("RateLimit-", "120", "-7", "30"), nil},
		"fraction left":           {header("RateLimit-", "120", "7.5", "30"), nil},
		"odd limit and odd reset": {header("RateLimit-", "lots", "7", "soon"), &poller.Window{Remaining: 7}},
		"reset in years":          {header("RateLimit-", "120", "7", "99999999"), &poller.Window{Limit: 120, Remaining: 7}},
		"more than any int":       {header("RateLimit-", "", "99999999999999999999", ""), &poller.Window{Remaining: 9_000_000_000}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			a, c := api(t, sumetest.Options{})
			a.SetFault("job_1", sumetest.Fault{Header: tt.header}, sumetest.Fault{})
			got, err := c.Status(t.Context(), "job_1")
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tt.want, got.Window); diff != "" {
				t.Error(diff)
			}
			a.SetFault("job_1", sumetest.Fault{Status: http.StatusTooManyRequests, Header: tt.header})
			got, err = c.Status(t.Context(), "job_1")
			if f := fault(t, err); f.Class != poller.RateLimited {
				t.Errorf("got class %s, want %s", f.Class, poller.RateLimited)
			}
			if diff := cmp.Diff(tt.want, got.Window); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestStatus_Age(t *testing.T) {
	t.Parallel()
	for value, want := range map[string]time.Duration{
		"3600": time.Hour, " 7 , 20": 7 * time.Second, "0": 0, "-1": 0, "1.5": 0, "old": 0, "": 0,
		"99999999999999999999": sume.MaxWait,
	} {
		var asked atomic.Pointer[http.Header]
		a := sumetest.New(sumetest.Options{})
		a.AddJob("job_1", sumetest.Plan{})
		c := connect(t, listen(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			asked.Store(&r.Header)
			a.ServeHTTP(w, r)
		})))
		a.SetFault("job_1", sumetest.Fault{Header: map[string]string{"Age": value}})
		if got, err := c.Status(t.Context(), "job_1"); err != nil || got.Age != want {
			t.Errorf("%q: got %v, %v, want %v", value, got.Age, err, want)
		}
		if got := asked.Load().Values("Cache-Control"); len(got) != 1 || got[0] != "no-cache" {
			t.Errorf("Cache-Control %q, want no-cache", got)
		}
		a.SetFault("job_1", sumetest.Fault{Status: 500, Header: map[string]string{"Age": value}})
		if got, err := c.Status(t.Context(), "job_1"); err == nil || got.Age != want {
			t.Errorf("500, %q: got %v, %v, want %v", value, got.Age, err, want)
		}
	}
}
