package poller

import (
	"math"
	"testing"
	"time"
)

var noon = time.Date(2026, 11, 2, 12, 0, 0, 0, time.UTC)

// quota returns a quota of 1000 reads a day, with some used after so long.
func quota(elapsed time.Duration, reads int) dailyQuota {
	return dailyQuota{limit: 1000, day: Day{Elapsed: elapsed, Reads: reads}, at: noon}
}

func TestDailyQuota_PaceLine(t *testing.T) {
	for elapsed, want := range map[time.Duration]float64{
		0: 200, 6 * time.Hour: 400, 12 * time.Hour: 600, 24 * time.Hour: 1000, 30 * time.Hour: 1000,
	} {
		q := quota(elapsed, 0)
		if got := q.paceLine(noon); math.Abs(got-want) > 1e-9 {
			t.Errorf("after %v: got %v, want %v", elapsed, got, want)
		}
	}
	q := quota(0, 0)
	if got := q.paceLine(noon.Add(6 * time.Hour)); math.Abs(got-400) > 1e-9 {
		t.Errorf("6 h after the figures were read: got %v, want 400", got)
	}
}

func TestDailyQuota_MaxReads(t *testing.T) {
	for name, c := range map[string]struct {
		quota dailyQuota
		want  int
		in    time.Duration // until a read is allowed; 0: now
	}{
		"no limit":               {dailyQuota{}, -1, 0},
		"below the line":         {quota(0, 100), 200, 0},
		"one below the line":     {quota(0, 199), 200, 0},
		"at the line":            {quota(0, 200), 200, 108 * time.Second},
		"at the line, at noon":   {quota(12*time.Hour, 600), 600, 108 * time.Second},
		"a moment too early":     {quota(108*time.Second-500*time.Microsecond, 200), 200, time.Millisecond},
		"above the line":         {quota(0, 500), 501, 0},
		"above the line, at 6 h": {quota(6*time.Hour, 999), 1000, 0},
		"used up":                {quota(20*time.Hour, 1000), 1000, 4 * time.Hour},
		"used up and lowered":    {quota(20*time.Hour, 1500), 1500, 4 * time.Hour},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got, at := c.quota.maxReads(noon)
			in := time.Duration(0)
			if !at.IsZero() {
				in = at.Sub(noon)
			}
			if got != c.want || (in-c.in).Abs() > time.Microsecond {
				t.Errorf("got %d in %v, want %d in %v", got, in, c.want, c.in)
			}
			if c.quota.day.Reads >= c.quota.limit || at.IsZero() {
				return
			}
			if again, _ := c.quota.maxReads(at); again != got+1 {
				t.Errorf("got %d at that time, want %d", again, got+1)
			}
		})
	}
}

func TestDailyQuota_AboveTheLine(t *testing.T) {
	const pause = 24 * time.Hour / 500 // what is left of the day for each read that is left
	q := quota(0, 500)
	q.took(noon, 0)
	if !q.aboveAt.IsZero() {
		t.Fatal("an empty claim counts as a read above the line")
	}
	q.took(noon, 1)
	if reads, at := q.maxReads(noon); reads != 500 || at.Sub(noon) != pause {
		t.Errorf("got %d in %v, want no read for %v", reads, at.Sub(noon), pause)
	}
	// 501 pauses of 110 s are left of this day, so the first of them is over
	// after 110 s.
	q = quota(24*time.Hour-501*110*time.Second, 500)
	q.took(noon, 1)
	for in, want := range map[time.Duration]int{110*time.Second - 1: 500, 110 * time.Second: 501} {
		if reads, _ := q.maxReads(noon.Add(in)); reads != want {
			t.Errorf("got %d after %v, want %d", reads, in, want)
		}
	}
	for name, below := range map[string]dailyQuota{"below the line": quota(0, 199), "on the line": quota(0, 200)} {
		below.took(noon, 1)
		if !below.aboveAt.IsZero() {
			t.Errorf("%s: a read counts as above it", name)
		}
	}
}

func TestDailyQuota_Known(t *testing.T) {
	q := quota(23*time.Hour, 0)
	for in, want := range map[time.Duration]bool{0: true, time.Hour - 1: true, time.Hour: false} {
		if got := q.known(noon.Add(in)); got != want {
			t.Errorf("in %v: got %v, want %v", in, got, want)
		}
	}
	q.start()
	if q.known(noon) || q.pending != -1 {
		t.Error("a new run knows the day's reads or the pending jobs")
	}
	if none := (dailyQuota{}); !none.known(noon) {
		t.Error("without a limit, the day's reads are asked for")
	}
}

func TestDailyQuota_Tight(t *testing.T) {
	unknown := quota(0, 900)
	unknown.at = time.Time{}
	for name, c := range map[string]struct {
		quota dailyQuota
		want  bool
	}{
		"a read is left":   {quota(0, 199), false},
		"no read is left":  {quota(0, 200), true},
		"part of one":      {quota(time.Minute, 200), true},
		"above":            {quota(0, 201), true},
		"reads not known":  {unknown, false},
		"no limit":         {dailyQuota{at: noon}, false},
		"no limit, unread": {dailyQuota{}, false},
	} {
		if got := c.quota.tight(noon); got != c.want {
			t.Errorf("%s: got %v, want %v", name, got, c.want)
		}
	}
	tight, counted := quota(0, 200), quota(0, 200)
	tight.pending, counted.pending = -1, 0
	loose := quota(0, 0)
	loose.pending = -1
	if !tight.needsPending(noon) || counted.needsPending(noon) || loose.needsPending(noon) {
		t.Error("the pending jobs are counted where the quota is tight, once a run")
	}
}

func TestDailyQuota_Stretch(t *testing.T) {
	for name, c := range map[string]struct {
		quota   dailyQuota
		pending int
		want    time.Duration
	}{
		"not tight":               {quota(12*time.Hour, 599), 100, 0},
		"not counted":             {quota(12*time.Hour, 600), -1, 0},
		"no job":                  {quota(12*time.Hour, 600), 0, 0},
		"one job":                 {quota(12*time.Hour, 600), 1, 108 * time.Second},
		"a hundred jobs":          {quota(12*time.Hour, 600), 100, 3 * time.Hour},
		"a job for each read":     {quota(12*time.Hour, 600), 400, 12 * time.Hour},
		"more jobs than reads":    {quota(12*time.Hour, 600), 500, 12*time.Hour + 144*time.Minute},
		"nothing left":            {quota(18*time.Hour, 1000), 10, 6*time.Hour + 864*time.Second},
		"used more than allowed":  {quota(18*time.Hour, 1200), 10, 6*time.Hour + 864*time.Second},
		"after midnight":          {quota(25*time.Hour, 1000), 10, 864 * time.Second},
		"after midnight, unspent": {quota(25*time.Hour, 999), 10, 0},
	} {
		c.quota.pending = c.pending
		if got := c.quota.stretch(noon); got != c.want {
			t.Errorf("%s: got %v, want %v", name, got, c.want)
		}
	}
}

func TestDailyQuota_GaveBack(t *testing.T) {
	q, none := quota(0, 5), dailyQuota{}
	q.gaveBack()
	none.gaveBack()
	if q.day.Reads != 4 || none.day.Reads != 0 {
		t.Errorf("got %d and %d reads, want 4 and, without a limit, 0", q.day.Reads, none.day.Reads)
	}
}
