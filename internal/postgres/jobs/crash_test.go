package jobs_test

import (
	"syscall"
	"testing"
	"time"

	"sumepoller/internal/devstack/server"
	"sumepoller/internal/pgtest"
	"sumepoller/internal/postgres/jobs"
	"sumepoller/migrations"
)

// A claim's commit does not wait for the disk. What docs promise of the daily
// count after a crash of the server: claims that its log writer had flushed are
// counted, and it flushes within three times wal_writer_delay.
func TestClaim_ServerCrash(t *testing.T) {
	t.Parallel()
	own, err := server.Start(t.Context(), server.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(own.Stop)
	db := &pgtest.DB{TB: t, URL: own.URL(), Pool: pgtest.Pool(t, own.URL())}
	if _, err := migrations.Up(t.Context(), db.Pool.Config()); err != nil {
		t.Fatal(err)
	}
	db.InsertDue(120)
	s := jobs.New(db.Pool)
	flushed := claim(t, s, counted(40, 1000)).Day.Reads
	at := pgtest.Value[string](db, `SELECT pg_current_wal_insert_lsn()::text`)
	began := time.Now()
	for !pgtest.Value[bool](db, `SELECT pg_current_wal_flush_lsn() >= $1::text::pg_lsn`, at) {
		if time.Since(began) > time.Minute {
			t.Fatal("the log writer does not flush the claim")
		}
	}
	claim(t, s, counted(40, 1000))
	claim(t, s, counted(40, 1000))
	// The loss of one process makes the server drop its shared memory and
	// recover from what is on the disk.
	victim := db.Number(`SELECT pg_backend_pid()`)
	if err := syscall.Kill(victim, syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	var reads, leased int
	for {
		err := db.Pool.QueryRow(t.Context(), `SELECT (SELECT reads FROM read_budget), (SELECT count(*)::integer FROM video_jobs WHERE leased_until > now())`).Scan(&reads, &leased)
		if err == nil {
			break
		}
		if time.Since(began) > time.Minute {
			t.Fatalf("the server does not recover: %v", err)
		}
	}
	if reads < flushed || reads != leased {
		t.Errorf("%d reads counted and %d rows leased after the crash; want as many of each, and at least the %d that were flushed", reads, leased, flushed)
	}
}
