package jobs_test

import (
	"fmt"
	"testing"
	"time"

	"sumepoller/internal/pgtest"
	"sumepoller/internal/poller"
	"sumepoller/internal/postgres"
	"sumepoller/internal/postgres/jobs"
)

// A row that another program has locked delays only itself.
func TestLock_OtherRowsWritten(t *testing.T) {
	t.Parallel()
	db := pgtest.New(t)
	db.InsertDue(128)
	s := jobs.New(db.Pool)
	first, second := counted(64, 1000), counted(64, 1000)
	toSettle, toRelease := claim(t, s, first), claim(t, s, second)
	var batch []poller.Settlement
	for _, j := range toSettle.Jobs {
		batch = append(batch, finish(j.ID, first.Lease))
	}
	var toGiveBack []poller.Release
	for _, j := range toRelease.Jobs {
		toGiveBack = append(toGiveBack, poller.Release{JobID: j.ID, Lease: second.Lease, Unread: true})
	}
	unlocks := []func(){db.Lock(batch[17].JobID), db.Lock(toGiveBack[40].JobID)}

	for name, write := range map[string]func() []poller.Outcome{
		"settle":  func() []poller.Outcome { return settle(t, s, batch...) },
		"release": func() []poller.Outcome { return release(t, s, toRelease.Day.Date, toGiveBack...) },
	} {
		for _, attempt := range []string{"first", "again"} {
			got := write() // returns while the two rows are still held
			if done, again := count(got, poller.Written), count(got, poller.Locked); done != 63 || again != 1 {
				t.Errorf("%s, %s: %d done and %d again, want 63 and 1", name, attempt, done, again)
			}
		}
	}
	for _, unlock := range unlocks {
		unlock()
	}
	if got := settle(t, s, batch[17]); got[0] != poller.Written {
		t.Errorf("settle of the row let go: %v", got)
	}
	if got := release(t, s, toRelease.Day.Date, toGiveBack[40]); got[0] != poller.Written {
		t.Errorf("release of the row let go: %v", got)
	}
	if n := db.Number(readsToday); n != 64 {
		t.Errorf("%d reads, want the 64 settled ones", n)
	}
}

func count(outcomes []poller.Outcome, of poller.Outcome) (n int) {
	for _, o := range outcomes {
		if o == of {
			n++
		}
	}
	return n
}

func TestLock_ClaimSkipsRow(t *testing.T) {
	t.Parallel()
	db := pgtest.New(t)
	db.InsertDue(3)
	unlock := db.Lock("job_3")
	s := jobs.New(db.Pool)
	if got := ids(claim(t, s, uncounted(2)).Jobs); len(got) != 2 || got[0] != "job_2" || got[1] != "job_1" {
		t.Errorf("claimed %v, want job_2 and job_1", got)
	}
	unlock()
	if got := ids(claim(t, s, uncounted(2)).Jobs); len(got) != 1 || got[0] != "job_3" {
		t.Errorf("claimed %v, want job_3 at the next claim", got)
	}
}

func TestLock_DayRow(t *testing.T) {
	t.Parallel()
	db := pgtest.New(t)
	db.InsertDue(1)
	s := jobs.New(db.Pool)
	claim(t, s, counted(0, 10))
	tx, err := db.Connect().Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := tx.Exec(t.Context(), `SELECT reads FROM read_budget FOR UPDATE`); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Claim(t.Context(), counted(1, 10)); postgres.SQLState(err) != "55P03" {
		t.Errorf("error %v, want a lock timeout", err)
	}
	if got := claim(t, s, uncounted(1)); len(got.Jobs) != 1 {
		t.Errorf("a claim that counts nothing got %d rows, want 1", len(got.Jobs))
	}
}

// Between a statement's snapshot and its lock another program commits a change
// to a row that is still ours.
func TestLock_RowChangedMeanwhile(t *testing.T) {
	t.Parallel()
	db := pgtest.New(t)
	db.InsertDue(2)
	s := jobs.New(db.Pool)
	r := counted(2, 10)
	day := claim(t, s, r).Day
	for name, write := range map[string]func(id string) poller.Outcome{
		"job_1": func(id string) poller.Outcome { return settle(t, s, finish(id, r.Lease))[0] },
		"job_2": func(id string) poller.Outcome {
			return release(t, s, day.Date, poller.Release{JobID: id, Lease: r.Lease, Unread: true})[0]
		},
	} {
		other := db.Connect()
		tx, err := other.Begin(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if _, err := tx.Exec(t.Context(), `UPDATE video_jobs SET idempotency_key = 'theirs' WHERE job_id = $1`, name); err != nil {
			t.Fatal(err)
		}
		got := make(chan poller.Outcome)
		go func() { got <- write(name) }()
		db.AwaitLockWaits(1)
		if err := tx.Commit(t.Context()); err != nil {
			t.Fatal(err)
		}
		if o := <-got; o == poller.LeaseLost {
			t.Errorf("%s: outcome %v, want Written or Locked", name, o)
		}
		if o := write(name); o != poller.Written {
			t.Errorf("%s, asked again: outcome %v, want Written", name, o)
		}
	}
	if n := db.Number(`SELECT count(*) FROM video_jobs WHERE idempotency_key = 'theirs'`); n != 2 {
		t.Errorf("%d rows keep what the other program wrote, want 2", n)
	}
}

func TestLock_OppositeOrder(t *testing.T) {
	t.Parallel()
	db := pgtest.New(t)
	const rows = 100
	db.InsertDue(rows)
	s := jobs.New(db.Pool)
	r := uncounted(rows)
	claim(t, s, r)
	there := make([]poller.Settlement, rows)
	back := make([]poller.Settlement, rows)
	for i := range rows {
		there[i] = reschedule(fmt.Sprintf("job_%d", i+1), r.Lease, time.Minute)
		back[rows-1-i] = there[i]
	}
	got := make(chan []poller.Outcome)
	for _, batch := range [][]poller.Settlement{there, back, there, back} {
		go func() { got <- settle(t, s, batch...) }()
	}
	for range 4 {
		if o := <-got; count(o, poller.LeaseLost) > 0 {
			t.Errorf("%d settlements lost", count(o, poller.LeaseLost))
		}
	}
	if n := db.Number(`SELECT max(polls) FROM video_jobs`); n != 1 {
		t.Errorf("a row was settled %d times", n)
	}
}
