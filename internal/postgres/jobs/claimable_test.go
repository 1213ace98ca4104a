package jobs_test

import (
	"testing"

	"sumepoller/internal/operator"
	"sumepoller/internal/pgtest"
	"sumepoller/internal/postgres/jobs"
	"sumepoller/internal/postgres/requests"
)

// The claim, the look for the next due row, the backlog and inspect agree which
// rows are claimable.
func TestClaimable(t *testing.T) {
	t.Parallel()
	for lease, claimable := range map[string]int{
		`'-infinity'`:                      1,
		`now() - interval '1 second'`:      1,
		`now() + interval '10 minutes'`:    0,
		`now() + interval '16 minutes'`:    1, // from before a clock was set back
		`'infinity'`:                       1,
		`now() + interval '14.99 minutes'`: 0,
	} {
		t.Run(lease, func(t *testing.T) {
			t.Parallel()
			db := pgtest.New(t)
			db.InsertDue(1)
			db.Exec(`UPDATE video_jobs SET lease_id = gen_random_uuid(), leased_until = ` + lease)
			s := jobs.New(db.Pool)
			seen, err := requests.New(db.Pool).Inspect(t.Context(), operator.Inspect{JobIDs: []string{"job_1"}}, 0)
			if err != nil {
				t.Fatal(err)
			}
			if leased := seen.Jobs[0].LeasedUntil != nil; seen.Due != claimable || seen.Leased != 1-claimable || leased != (claimable == 0) {
				t.Errorf("inspect: %d due, %d leased, lease shown %v; want %d claimable", seen.Due, seen.Leased, leased, claimable)
			}
			if b, err := s.Backlog(t.Context()); err != nil || b.Due != claimable {
				t.Errorf("backlog: %d due, %v; want %d", b.Due, err, claimable)
			}
			if in, ok, err := s.NextDue(t.Context(), nil); err != nil || !ok || (in <= 0) != (claimable == 1) {
				t.Errorf("next due in %v, %v, %v; want %d claimable", in, ok, err, claimable)
			}
			if got := claim(t, s, uncounted(1)); len(got.Jobs) != claimable {
				t.Errorf("claimed %d rows, want %d", len(got.Jobs), claimable)
			}
		})
	}
}
