package jobs_test

import (
	"crypto/rand"
	"fmt"
	"testing"
	"time"

	"sumepoller/internal/poller"
)

// readsToday selects the reads that are counted for the UTC day.
const readsToday = `SELECT coalesce((SELECT reads FROM read_budget WHERE day = (now() AT TIME ZONE 'utc')::date), 0)`

// newLease returns a new lease id.
func newLease() (id poller.LeaseID) {
	_, _ = rand.Read(id[:])
	return id
}

// uncounted is a claim of n rows whose reads are not counted.
func uncounted(n int) poller.ClaimRequest {
	return poller.ClaimRequest{Lease: newLease(), Limit: n, For: 30 * time.Second, PaceLine: -1}
}

// counted is a claim of n rows whose reads are counted, up to paceLine in a day.
func counted(n, paceLine int) poller.ClaimRequest {
	r := uncounted(n)
	r.PaceLine = paceLine
	return r
}

// claim claims rows, and fails the test on an error.
func claim(t testing.TB, q poller.Queue, r poller.ClaimRequest) poller.Claimed {
	t.Helper()
	got, err := q.Claim(t.Context(), r)
	if err != nil {
		t.Fatal(err)
	}
	return got
}

// settle settles a batch, and fails the test on an error.
func settle(t testing.TB, q poller.Queue, batch ...poller.Settlement) []poller.Outcome {
	t.Helper()
	got, err := q.Settle(t.Context(), batch)
	if err != nil {
		t.Fatal(err)
	}
	return outcomes(got)
}

// release releases rows, and fails the test on an error.
func release(t testing.TB, q poller.Queue, date string, rows ...poller.Release) []poller.Outcome {
	t.Helper()
	got, err := q.Release(t.Context(), date, rows)
	if err != nil {
		t.Fatal(err)
	}
	return outcomes(got)
}

// outcomes returns the results' outcomes.
func outcomes(results []poller.Result) []poller.Outcome {
	got := make([]poller.Outcome, len(results))
	for i, r := range results {
		got[i] = r.Outcome
	}
	return got
}

// ids returns the jobs' ids.
func ids(jobs []poller.Job) []string {
	got := make([]string, 0, len(jobs))
	for _, j := range jobs {
		got = append(got, j.ID)
	}
	return got
}

// finish settles a job as completed, with a small answer.
func finish(id string, lease poller.LeaseID) poller.Settlement {
	return poller.Settlement{
		JobID: id, Lease: lease, State: "completed", Polled: true, Status: "completed", Delay: time.Minute,
		Final: fmt.Appendf(nil, `{"terminal": true, "sume_status": "completed", "job_id": %q}`, id),
	}
}

// reschedule settles a job that is not finished.
func reschedule(id string, lease poller.LeaseID, in time.Duration) poller.Settlement {
	return poller.Settlement{JobID: id, Lease: lease, Delay: in, Polled: true, Status: "processing"}
}
