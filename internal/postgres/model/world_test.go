package model

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"pgregory.net/rapid"

	"sumepoller/internal/poller"
	"sumepoller/internal/postgres/requests"
)

const (
	leaseFor = 5 * time.Minute  // longer than any check takes
	hour     = time.Hour        // due later: not during this check
	patience = 10 * time.Second // past it a claim waits for somebody
)

// bench is one database, used by one check after the other.
type bench struct {
	ctx      context.Context
	pool     *pgxpool.Pool
	listener *pgx.Conn
	store    func() poller.Queue // a store as a new process has it
}

// world is one check: the model, and the claimants that act on the table.
type world struct {
	bench
	t         *rapid.T
	hand      *requests.Table
	rows      []*row
	claimants []*claimant
	writer    *writer // nil while the older worker holds nothing

	ceiling   int            // negative: reads are not counted
	date      string         // of today
	passed    int            // days that passed in this check
	reads     map[string]int // by date
	leases    int            // made so far
	looked    int64          // when the table was looked at last, microseconds since the epoch
	announced map[string]int // "job state" → how often it has to be announced
}

// claimant is one process: its store, and what it remembers.
type claimant struct {
	name  string
	store poller.Queue
	held  []hold   // what it believes to hold
	again []func() // operations whose answer it never saw

	declined []poller.Settlement // errors to be settled in place of what the table refused
	leftOut  map[string]bool     // rows that its run claims no more
}

// disagreement is what the store did and the model forbids.
type disagreement string

// midnight ends a check that has two days' reads to count.
type midnight struct{}

func (w *world) disagree(format string, args ...any) {
	panic(disagreement(fmt.Sprintf(format, args...)))
}

// check plays one random history on an emptied table. It panics with a
// disagreement where the store strays from the model.
func (b bench) check(t *rapid.T) {
	w := &world{bench: b, t: t, hand: requests.New(b.pool), reads: map[string]int{}, announced: map[string]int{}}
	for _, table := range []string{"video_jobs", "read_budget", "refusals"} {
		w.exec(`DELETE FROM ` + table)
	}
	if err := w.pool.QueryRow(w.ctx, `SELECT to_char(now() AT TIME ZONE 'utc', 'YYYY-MM-DD')`).Scan(&w.date); err != nil {
		w.t.Fatalf("ask for the date: %v", err)
	}
	w.listen()
	w.ceiling = rapid.SampledFrom([]int{-1, 1000, 1000, 12}).Draw(t, "ceiling")
	for range rapid.IntRange(2, 6).Draw(t, "rows") {
		w.insert(t)
	}
	for _, name := range []string{"A", "B", "C"} {
		w.claimants = append(w.claimants, &claimant{name: name, store: b.store(), leftOut: map[string]bool{}})
	}
	defer func() { w.writer.drop() }()
	t.Repeat(map[string]func(*rapid.T){
		"":                    func(*rapid.T) { w.compare() },
		"claim":               w.claimSome,
		"claim more":          w.claimSome,
		"settle":              w.settleSome,
		"settle more":         w.settleSome,
		"release":             w.releaseSome,
		"release more":        w.releaseSome,
		"ask again":           w.askAgain,
		"at the same time":    w.race,
		"crash":               w.crash,
		"a lease runs out":    w.expire,
		"an hour passes":      w.pass,
		"a day passes":        w.newDay,
		"another day passes":  w.newDay,
		"the table refuses":   w.refuse,
		"it refuses more":     w.refuse,
		"the table takes":     w.allow,
		"insert in the past":  w.insert,
		"delete":              w.delete,
		"backfill":            w.backfill,
		"stop":                w.stop,
		"older worker begins": w.begin,
		"older worker ends":   w.end,
	})
	w.finish()
}

// finish follows each pending row that the table lets change to its end, past
// those that it refuses. Once the table takes all, a new run wants each of the
// others claimed, finished and announced.
func (w *world) finish() {
	w.commit(w.t)
	w.follow()
	for _, r := range w.pending() {
		if len(r.refusals) == 0 {
			w.disagree("%s is lost beside rows that the table refuses", r.ID)
		}
		clear(r.refusals)
	}
	w.exec(`DELETE FROM refusals`)
	w.follow()
	for _, r := range w.pending() {
		w.disagree("%s is lost: it can no longer be claimed", r.ID)
	}
	w.compare()
	w.heard()
}

// follow makes every pending row due and lets its lease run out, and finishes
// in a new run what a claim brings.
func (w *world) follow() {
	w.exec(`UPDATE video_jobs SET next_poll_at = now() - interval '1 second', leased_until = least(leased_until, now() - interval '1 second') WHERE state = 'pending'`)
	for _, r := range w.pending() {
		r.Due, r.moved, r.ahead = true, true, false
		if r.Tenure == running {
			r.Tenure = over
		}
	}
	w.compare()
	if w.ceiling >= 0 {
		w.ceiling += 1000
	}
	c := &claimant{name: "D", store: w.store(), leftOut: map[string]bool{}}
	for {
		lease := w.newLease()
		jobs := w.claim(c, poller.ClaimRequest{Lease: lease, Limit: 4, For: leaseFor, PaceLine: w.ceiling}, false)
		if len(jobs) == 0 {
			break
		}
		var batch []poller.Settlement
		for _, j := range jobs {
			batch = append(batch, poller.Settlement{
				JobID: j.ID, Lease: lease, State: "completed", Polled: true, Status: "completed", Final: []byte(`{}`), Delay: hour, Backoff: hour,
			})
		}
		w.settle(c, batch)
		if errs := c.declined; len(errs) > 0 {
			c.declined = nil
			w.settle(c, errs)
		}
	}
	w.compare()
}

func (w *world) exec(sql string, args ...any) {
	if _, err := w.pool.Exec(w.ctx, sql, args...); err != nil {
		w.t.Fatalf("%s: %v", sql, err)
	}
}

func (w *world) row(id string) *row {
	for _, r := range w.rows {
		if r.ID == id {
			return r
		}
	}
	return nil
}

func (w *world) pending() []*row {
	return w.which(func(r *row) bool { return r.State == poller.StatePending })
}

func (w *world) which(is func(*row) bool) []*row { return only(w.rows, is) }

// one draws one of the rows, and skips the action where there is none.
func (w *world) one(t *rapid.T, rows []*row) *row {
	if len(rows) == 0 {
		t.SkipNow() // no such row
	}
	return rows[rapid.IntRange(0, len(rows)-1).Draw(t, "row")]
}

// someone draws a claimant of whom is holds, and skips the action where it
// holds of none.
func (w *world) someone(t *rapid.T, is func(*claimant) bool) *claimant {
	var some []*claimant
	for _, c := range w.claimants {
		if is == nil || is(c) {
			some = append(some, c)
		}
	}
	if len(some) == 0 {
		t.SkipNow() // no such claimant
	}
	return some[rapid.IntRange(0, len(some)-1).Draw(t, "claimant")]
}

// newLease makes the same leases in the same history.
func (w *world) newLease() (lease poller.LeaseID) {
	w.leases++
	lease[0], lease[15] = 0xa0, byte(w.leases)
	lease[14] = byte(w.leases >> 8)
	return lease
}
