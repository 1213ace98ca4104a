package jobs_test

import (
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"sumepoller/internal/pgtest"
	"sumepoller/internal/poller"
	"sumepoller/internal/postgres/jobs"
)

func TestClaim_PaceLine(t *testing.T) {
	t.Parallel()
	db := pgtest.New(t)
	db.InsertDue(50)
	s := jobs.New(db.Pool)
	for i, step := range []struct{ ask, paceLine, got, reads int }{
		{10, 25, 10, 10},
		{10, 25, 10, 20},
		{10, 25, 5, 25},
		{10, 25, 0, 25},
		{10, 24, 0, 25},
		{10, 26, 1, 26},
		{10, 0, 0, 26},
	} {
		got := claim(t, s, counted(step.ask, step.paceLine))
		if len(got.Jobs) != step.got || got.Day.Reads != step.reads {
			t.Errorf("step %d: %d rows and %d reads, want %d and %d", i, len(got.Jobs), got.Day.Reads, step.got, step.reads)
		}
		if n := db.Number(readsToday); n != step.reads {
			t.Errorf("step %d: read_budget has %d reads, want %d", i, n, step.reads)
		}
	}
}

func TestClaim_Uncounted(t *testing.T) {
	t.Parallel()
	db := pgtest.New(t)
	s := jobs.New(db.Pool)
	for _, rows := range []int{0, 3} {
		db.InsertDue(rows)
		r := uncounted(5)
		got := claim(t, s, r)
		today, err := s.Today(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if got.Day.Date != today.Date || got.Day.Reads != 0 || today.Reads != 0 || len(got.Jobs) != rows {
			t.Errorf("%d due: %+v, today %+v", rows, got, today)
		}
		if d := today.Elapsed - got.Day.Elapsed; d < 0 || d > time.Minute || got.Day.Elapsed > 24*time.Hour {
			t.Errorf("elapsed %v, then %v", got.Day.Elapsed, today.Elapsed)
		}
		for _, j := range got.Jobs {
			release(t, s, got.Day.Date, poller.Release{JobID: j.ID, Lease: r.Lease, Unread: true})
		}
	}
	if n := db.Number(`SELECT count(*) FROM read_budget`); n != 0 {
		t.Errorf("read_budget has %d rows, want none", n)
	}
}

func TestClaim_PaceLineConcurrent(t *testing.T) {
	t.Parallel()
	db := pgtest.New(t)
	db.InsertDue(300)
	const paceLine = 200
	var wg sync.WaitGroup
	var mu sync.Mutex
	claimed, net := 0, 0
	for range 8 {
		wg.Go(func() {
			s := jobs.New(db.Pool)
			for round := 0; ; round++ {
				r := counted(7, paceLine)
				got, err := s.Claim(t.Context(), r)
				if err != nil {
					t.Error(err)
					return
				}
				if got.Day.Reads > paceLine {
					t.Errorf("%d reads, above the pace line", got.Day.Reads)
				}
				back := 0
				if round < 3 && len(got.Jobs) > 0 { // some go back unread meanwhile
					outcomes, err := s.Release(t.Context(), got.Day.Date, []poller.Release{{JobID: got.Jobs[0].ID, Lease: r.Lease, Unread: true}})
					if err != nil || outcomes[0].Outcome != poller.Written {
						t.Errorf("release: %v, %v", outcomes, err)
					}
					back = 1
				}
				mu.Lock()
				claimed, net = claimed+len(got.Jobs), net+len(got.Jobs)-back
				mu.Unlock()
				if len(got.Jobs) == 0 {
					return
				}
			}
		})
	}
	wg.Wait()
	if n := db.Number(readsToday); n != net || n > paceLine {
		t.Errorf("read_budget has %d, want the %d claimed and not given back, at most %d", n, net, paceLine)
	}
	if claimed < paceLine-7 {
		t.Errorf("%d claimed, want about %d", claimed, paceLine)
	}
}

func TestClaim_FirstOfTheDay(t *testing.T) {
	t.Parallel()
	const stores, paceLine = 6, 20
	db := pgtest.New(t)
	for range 30 {
		db.Exec(`TRUNCATE read_budget, video_jobs`)
		db.InsertDue(50)
		var all sync.WaitGroup
		claims := make([]int, stores)
		for i := range stores {
			s := jobs.New(db.Pool)
			all.Go(func() {
				for range 4 {
					claims[i] += len(claim(t, s, counted(7, paceLine)).Jobs)
				}
			})
		}
		all.Wait()
		rows := 0
		for _, n := range claims {
			rows += n
		}
		leased := db.Number(`SELECT count(*)::integer FROM video_jobs WHERE leased_until > now()`)
		if counted := db.Number(readsToday); counted != paceLine || rows != paceLine || leased != paceLine {
			t.Fatalf("%d reads counted, %d rows claimed, %d leased; want %d", counted, rows, leased, paceLine)
		}
	}
}

func TestRelease_Unread(t *testing.T) {
	t.Parallel()
	db := pgtest.New(t)
	db.InsertDue(4)
	s := jobs.New(db.Pool)
	r := counted(4, 100)
	got := claim(t, s, r)
	rows := []poller.Release{
		{JobID: "job_1", Lease: r.Lease, Unread: true},
		{JobID: "job_2", Lease: r.Lease, Unread: true},
		{JobID: "job_3", Lease: r.Lease},
		{JobID: "job_4", Lease: newLease(), Unread: true}, // another's by now
		{JobID: "gone", Lease: r.Lease, Unread: true},
	}
	outcomes := []poller.Outcome{poller.Written, poller.Written, poller.Written, poller.LeaseLost, poller.Missing}
	for _, attempt := range []string{"first", "again"} {
		if diff := cmp.Diff(outcomes, release(t, s, got.Day.Date, rows...)); diff != "" {
			t.Errorf("%s: outcomes (-want +got):\n%s", attempt, diff)
		}
		if n := db.Number(readsToday); n != 2 {
			t.Errorf("%s: %d reads, want 2", attempt, n)
		}
	}
	due := ids(claim(t, s, counted(4, 100)).Jobs)
	slices.Sort(due)
	if diff := cmp.Diff([]string{"job_1", "job_2", "job_3"}, due); diff != "" {
		t.Errorf("due after the release (-want +got):\n%s", diff)
	}
	if n := db.Number(`SELECT count(*) FROM video_jobs WHERE polls + consecutive_errors + lost_leases > 0`); n != 0 {
		t.Errorf("%d rows had something counted, want none", n)
	}
}

func TestRelease_EarlierDay(t *testing.T) {
	t.Parallel()
	db := pgtest.New(t)
	db.InsertDue(1)
	s := jobs.New(db.Pool)
	r := counted(1, 100)
	claim(t, s, r)
	db.Exec(`INSERT INTO read_budget (day, reads) VALUES ('2001-02-03', 9)`)
	release(t, s, "2001-02-03", poller.Release{JobID: "job_1", Lease: r.Lease, Unread: true})
	if before, today := db.Number(`SELECT reads FROM read_budget WHERE day = '2001-02-03'`), db.Number(readsToday); before != 8 || today != 1 {
		t.Errorf("that day has %d reads and today %d, want 8 and 1", before, today)
	}
}
