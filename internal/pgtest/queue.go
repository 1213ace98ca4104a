package pgtest

import (
	"crypto/rand"
	"fmt"
	"testing"
	"time"

	"sumepoller/internal/poller"
)

// ReadsToday selects the reads that are counted for the UTC day.
const ReadsToday = `SELECT coalesce((SELECT reads FROM read_budget WHERE day = (now() AT TIME ZONE 'utc')::date), 0)`

// Lease returns a new lease id.
func Lease() (id poller.LeaseID) {
	_, _ = rand.Read(id[:])
	return id
}

// Uncounted is a claim of n rows whose reads are not counted.
func Uncounted(n int) poller.ClaimRequest {
	return poller.ClaimRequest{Lease: Lease(), Limit: n, For: 30 * time.Second, PaceLine: -1}
}

// Counted is a claim of n rows whose reads are counted, up to paceLine in a day.
func Counted(n, paceLine int) poller.ClaimRequest {
	r := Uncounted(n)
	r.PaceLine = paceLine
	return r
}

// Claim claims rows, and fails the test on an error.
func Claim(t testing.TB, q poller.Queue, r poller.ClaimRequest) poller.Claimed {
	t.Helper()
	got, err := q.Claim(t.Context(), r)
	if err != nil {
		t.Fatal(err)
	}
	return got
}

// Settle settles a batch, and fails the test on an error.
func Settle(t testing.TB, q poller.Queue, batch ...poller.Settlement) []poller.Outcome {
	t.Helper()
	got, err := q.Settle(t.Context(), batch)
	if err != nil {
		t.Fatal(err)
	}
	return Outcomes(got)
}

// Release releases rows, and fails the test on an error.
func Release(t testing.TB, q poller.Queue, date string, rows ...poller.Release) []poller.Outcome {
	t.Helper()
	got, err := q.Release(t.Context(), date, rows)
	if err != nil {
		t.Fatal(err)
	}
	return Outcomes(got)
}

// Outcomes returns the results' outcomes.
func Outcomes(results []poller.Result) []poller.Outcome {
	got := make([]poller.Outcome, len(results))
	for i, r := range results {
		got[i] = r.Outcome
	}
	return got
}

// IDs returns the jobs' ids.
func IDs(jobs []poller.Job) []string {
	got := make([]string, 0, len(jobs))
	for _, j := range jobs {
		got = append(got, j.ID)
	}
	return got
}

// Finish settles a job as completed, with a small answer.
func Finish(id string, lease poller.LeaseID) poller.Settlement {
	return poller.Settlement{
		JobID: id, Lease: lease, State: "completed", Polled: true, Status: "completed", Delay: time.Minute,
		Final: fmt.Appendf(nil, `{"terminal": true, "sume_status": "completed", "job_id": %q}`, id),
	}
}

// Reschedule settles a job that is not finished.
func Reschedule(id string, lease poller.LeaseID, in time.Duration) poller.Settlement {
	return poller.Settlement{JobID: id, Lease: lease, Delay: in, Polled: true, Status: "processing"}
}
