package sumetest_test

import (
	"context"
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"

	"sumepoller/internal/sume/sumetest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func listen(t testing.TB, h http.Handler) string {
	t.Helper()
	s, err := sumetest.Listen(h)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Close)
	t.Cleanup(http.DefaultClient.CloseIdleConnections)
	return s.URL
}

// ask sends a request with key k and returns status, headers and body.
func ask(t testing.TB, method, url, k, body string, header ...string) (int, http.Header, string) {
	t.Helper()
	req, err := http.NewRequestWithContext(context.Background(), method, url, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("x-api-key", k)
	for i := 0; i+1 < len(header); i += 2 {
		req.Header.Set(header[i], header[i+1])
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = resp.Body.Close() }()
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return resp.StatusCode, resp.Header, string(text)
}

func TestRead_Limits(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		options sumetest.Options
		prefix  string
		limit   string
	}{
		"minute limit":     {sumetest.Options{ReadsPerMinute: 3}, "RateLimit-", "3"},
		"daily limit":      {sumetest.Options{ReadsPerMinute: 120, ReadsPerDay: 3, Headers: sumetest.HeadersX}, "X-RateLimit-", "3"},
		"daily limit only": {sumetest.Options{ReadsPerDay: 3}, "RateLimit-", "3"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			tt.options.Unknown = &sumetest.Plan{}
			a := sumetest.New(tt.options)
			url := listen(t, a) + "/v1/jobs/job_1/status"
			for _, left := range []string{"2", "1", "0"} {
				status, h, _ := ask(t, http.MethodGet, url, "k1", "")
				if status != 200 || h.Get(tt.prefix+"Remaining") != left || h.Get(tt.prefix+"Limit") != tt.limit || h.Get(tt.prefix+"Reset") == "" {
					t.Errorf("got %d, %v, want 200 with %s left", status, h, left)
				}
			}
			status, h, body := ask(t, http.MethodGet, url, "k1", "")
			if status != 429 || h.Get("Retry-After") == "" || !strings.Contains(body, "rate_limit_exceeded") {
				t.Errorf("got %d, %v, %s, want 429 with Retry-After", status, h, body)
			}
			if status, _, _ := ask(t, http.MethodGet, url, "k2", ""); status != 200 {
				t.Errorf("another key: got %d, want 200", status)
			}
			if s := a.Stats(); s.Reads != 5 || s.Limited != 1 || s.Answered != 4 {
				t.Errorf("got %+v, want 5 reads, 1 limited", s)
			}
		})
	}
}

func TestSetKeys(t *testing.T) {
	t.Parallel()
	a := sumetest.New(sumetest.Options{Keys: []string{"old"}, Unknown: &sumetest.Plan{}})
	url := listen(t, a) + "/v1/jobs/job_1/status"
	want := map[string]int{"old": 200, "new": 401, "": 401}
	for range 2 {
		for k, status := range want {
			if got, _, _ := ask(t, http.MethodGet, url, k, ""); got != status {
				t.Errorf("key %q: got %d, want %d", k, got, status)
			}
		}
		a.SetKeys("new")
		want = map[string]int{"old": 401, "new": 200, "": 401}
	}
}

func TestStats_ConcurrentReads(t *testing.T) {
	t.Parallel()
	a := sumetest.New(sumetest.Options{Latency: 300 * time.Millisecond, Unknown: &sumetest.Plan{}})
	url := listen(t, a)
	var all sync.WaitGroup
	for range 3 {
		all.Go(func() { ask(t, http.MethodGet, url+"/v1/jobs/job_1/status", "k", "") })
	}
	all.Go(func() { ask(t, http.MethodGet, url+"/v1/jobs/job_2/status", "k", "") })
	all.Wait()
	for range 5 { // one after another
		ask(t, http.MethodGet, url+"/v1/jobs/job_3/status", "k", "")
	}
	s := a.Stats()
	got := []int{s.Overlapping, s.MaxInFlight, s.InFlight, len(a.Times())}
	if diff := cmp.Diff([]int{2, 4, 0, 9}, got); diff != "" {
		t.Error(diff)
	}
}

func TestPost(t *testing.T) {
	t.Parallel()
	a := sumetest.New(sumetest.Options{Bought: sumetest.Plan{End: "failed"}})
	url := listen(t, a)
	for i, step := range []struct {
		body, key string
		status    int
		holds     string
	}{
		{`{"a":1}`, "order-1", 202, `"idempotency_hit":false`},
		{`{"a":1}`, "order-1", 202, `"idempotency_hit":true`},
		{`{"a":2}`, "order-1", 409, sumetest.CodeMismatch},
		{`[]`, "order-2", 422, "validation_error"},
		{`{"a":1}`, "order-2", 202, `"job_bought_2"`},
	} {
		status, _, body := ask(t, http.MethodPost, url+"/v1/videos", "k", step.body, "Idempotency-Key", step.key)
		if status != step.status || !strings.Contains(body, step.holds) {
			t.Errorf("post %d: got %d, %s, want %d with %s", i, status, body, step.status, step.holds)
		}
	}
	if _, _, body := ask(t, http.MethodGet, url+"/v1/jobs/job_bought_1/status", "k", ""); !strings.Contains(body, `"failed"`) {
		t.Errorf("got %s, want the plan of bought jobs", body)
	}
	if billed := a.Stats().Billed; billed != 2 {
		t.Errorf("%d billed, want 2", billed)
	}
}

func TestServeHTTP_Unknown(t *testing.T) {
	t.Parallel()
	a := sumetest.New(sumetest.Options{})
	url := listen(t, a)
	for _, path := range []string{"/v1/jobs/job_1/status", "/v1/jobs//status", "/v1/jobs/a/b/status", "/v1/jobs/job_1", "/v2/videos", "/v1/videos"} {
		if status, _, _ := ask(t, http.MethodGet, url+path, "k", ""); status != 404 {
			t.Errorf("%s: got %d, want 404", path, status)
		}
	}
	if s := a.Stats(); s.Reads != 1 || s.Strays != 5 {
		t.Errorf("got %d reads, %d strays, want 1 and 5", s.Reads, s.Strays)
	}
}

func TestReset(t *testing.T) {
	t.Parallel()
	a := sumetest.New(sumetest.Options{Keys: []string{"k"}})
	a.AddJob("..", sumetest.Plan{Reads: 1, Hint: 2})
	a.AddJob("job_2", sumetest.Plan{})
	a.SetFault("job_2", sumetest.Fault{Status: 503})
	url := listen(t, sumetest.Handler(a, sumetest.NewSecrets()))
	if status, _, body := ask(t, http.MethodGet, url+"/v1/jobs/%2e%2e/status", "k", ""); status != 200 || !strings.Contains(body, `"next_poll_after_seconds":2`) {
		t.Errorf("got %d, %s, want the job's first answer", status, body)
	}
	if status, _, _ := ask(t, http.MethodGet, url+"/v1/jobs/job_2/status", "k", ""); status != 503 {
		t.Errorf("got %d, want the fault's 503", status)
	}
	if a.Reset(); a.Stats().Reads != 0 || len(a.Times()) != 0 {
		t.Errorf("got %+v, want no reads", a.Stats())
	}
}

func BenchmarkRead(b *testing.B) {
	a := sumetest.New(sumetest.Options{Unknown: &sumetest.Plan{Reads: 1 << 30, Hint: 15}})
	url := listen(b, a) + "/v1/jobs/job_1/status"
	b.ReportAllocs()
	for b.Loop() {
		ask(b, http.MethodGet, url, "k", "")
	}
}
