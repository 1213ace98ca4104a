package jobs_test

import (
	"testing"

	"sumepoller/internal/pgtest"
	"sumepoller/internal/postgres/jobs"
)

// A claim that waits for the day's count has an older now() than the one that
// leases a row meanwhile, for the longest time that there is.
func TestClaim_LeaseNewerThanNow(t *testing.T) {
	t.Parallel()
	db := pgtest.New(t)
	db.InsertDue(1)
	db.Exec(`UPDATE video_jobs SET lost_leases = 10`)
	db.Exec(`INSERT INTO read_budget (day, reads) SELECT (now() AT TIME ZONE 'utc')::date + d, 0 FROM generate_series(0, 1) AS d`)
	tx, err := db.Connect().Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := tx.Exec(t.Context(), `SELECT reads FROM read_budget FOR UPDATE`); err != nil {
		t.Fatal(err)
	}
	waiting := make(chan int)
	go func() {
		waiting <- len(claim(t, jobs.New(pgtest.Pool(t, db.URL)), counted(1, 100)).Jobs)
	}()
	db.AwaitLockWaits(1)
	if n := len(claim(t, jobs.New(db.Pool), uncounted(1)).Jobs); n != 1 {
		t.Errorf("claimed %d rows, want 1", n)
	}
	if err := tx.Rollback(t.Context()); err != nil {
		t.Fatal(err)
	}
	if n := <-waiting; n != 0 {
		t.Errorf("the claim that waited took the row too")
	}
}
