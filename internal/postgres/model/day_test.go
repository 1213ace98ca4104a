package model

import (
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/jackc/pgx/v5"
	"pgregory.net/rapid"
)

const (
	dateForm = time.DateOnly
	longest  = 20 * time.Minute // no lease is longer
)

// charge is a day whose count a read was taken from: its date, as it was when
// so many days had passed in this check.
type charge struct {
	date   string
	passed int
}

// dateOf returns what the date of a charge is by now. Days pass in that all of
// the past becomes older.
func (w *world) dateOf(c charge) string {
	date, err := time.Parse(dateForm, c.date)
	if err != nil {
		return c.date
	}
	return date.AddDate(0, 0, c.passed-w.passed).Format(dateForm)
}

// today is the day whose count reads are taken from.
func (w *world) today() charge { return charge{w.date, w.passed} }

// readsToday is how many reads the day has lost.
func (w *world) readsToday() int { return w.reads[w.date] }

// refund gives a read back to the day that it was taken from.
func (w *world) refund(c charge) {
	if date := w.dateOf(c); w.ceiling >= 0 && w.reads[date] > 0 {
		w.reads[date]--
	}
}

// newDay lets a day pass: every lease has run out.
func (w *world) newDay(t *rapid.T) {
	if w.writer != nil || w.passed == 5 {
		t.SkipNow() // rows are locked, or it is enough
	}
	w.t.Log("a day passes")
	w.exec(`WITH moved AS (DELETE FROM read_budget RETURNING day, reads)
		INSERT INTO read_budget (day, reads) SELECT day - 1, reads FROM moved ORDER BY day`)
	w.exec(`UPDATE video_jobs SET leased_until = leased_until - interval '24 hours' WHERE leased_until > '-infinity'`)
	w.passed++
	reads := map[string]int{}
	for date, n := range w.reads {
		reads[w.dateOf(charge{date, w.passed - 1})] = n
	}
	w.reads = reads
	for _, r := range w.rows {
		if r.Tenure == running {
			r.Tenure = over
		}
	}
}

// compareReads holds each day's count against the model.
func (w *world) compareReads() {
	rows, err := w.pool.Query(w.ctx, `SELECT to_char(day, 'YYYY-MM-DD'), reads FROM read_budget`)
	if err != nil {
		w.t.Fatalf("look at the read budget: %v", err)
	}
	got, want := map[string]int{}, map[string]int{}
	var date string
	var reads int
	if _, err := pgx.ForEachRow(rows, []any{&date, &reads}, func() error {
		if reads != 0 {
			got[date] = reads
		}
		return nil
	}); err != nil {
		w.t.Fatalf("look at the read budget: %v", err)
	}
	for date, n := range w.reads {
		if n != 0 {
			want[date] = n
		}
	}
	if diff := cmp.Diff(want, got); diff != "" {
		w.disagree("reads of each day (-want +got):\n%s", diff)
	}
	if w.ceiling >= 0 && w.readsToday() > w.ceiling {
		w.disagree("%d reads are taken, over the day's %d", w.readsToday(), w.ceiling)
	}
}
