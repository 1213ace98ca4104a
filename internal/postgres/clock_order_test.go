package postgres_test

import (
	"testing"

	"sumepoller/internal/pgtest"
	"sumepoller/internal/postgres"
)

// A claim that waits for the day's count has an older now() than the one that
// leases a row meanwhile, for the longest time that there is.
func TestALeaseWrittenWhileAClaimWaitsIsNotTakenForOneFromBeforeAClockJumped(t *testing.T) {
	t.Parallel()
	db := newTable(t)
	db.due(1)
	db.exec(`UPDATE video_jobs SET lost_leases = 10`)
	db.exec(`INSERT INTO read_budget (day, reads) SELECT (now() AT TIME ZONE 'utc')::date + d, 0 FROM generate_series(0, 1) AS d`)
	tx, err := db.session().Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := tx.Exec(t.Context(), `SELECT reads FROM read_budget FOR UPDATE`); err != nil {
		t.Fatal(err)
	}
	waiting := make(chan int)
	go func() {
		waiting <- len(claim(t, postgres.NewStore(pgtest.Pool(t, db.url)), counting(1, 100)).Jobs)
	}()
	db.awaitLockWait()
	if n := len(claim(t, postgres.NewStore(db.pool), want(1)).Jobs); n != 1 {
		t.Errorf("claimed %d rows, want 1", n)
	}
	if err := tx.Rollback(t.Context()); err != nil {
		t.Fatal(err)
	}
	if n := <-waiting; n != 0 {
		t.Errorf("the claim that waited took the row too")
	}
}
