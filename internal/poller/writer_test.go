package poller

import (
	"testing"
	"time"
)

// waiting returns a writer with settlements that wait since noon.
func waiting(n int) *writer {
	w := &writer{}
	for range n {
		w.settle(noon, Settlement{})
	}
	return w
}

func TestWriter_NextBatch(t *testing.T) {
	for name, c := range map[string]struct {
		waiting int
		after   time.Duration
		quiet   bool
		want    int
		at      time.Duration // when to ask again; 0: not by time
	}{
		"nothing waits":          {0, time.Hour, true, 0, 0},
		"too young":              {191, 40*time.Millisecond - 1, false, 0, 40 * time.Millisecond},
		"old enough":             {191, 40 * time.Millisecond, false, 191, 0},
		"enough":                 {192, 0, false, 192, 0},
		"more than enough":       {193, 0, false, 192, 0},
		"no read is in flight":   {1, 0, true, 1, 0},
		"quiet, but retry later": {1, -1, true, 0, 40 * time.Millisecond},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := waiting(c.waiting)
			batch, at := w.nextBatch(noon.Add(c.after), c.quiet)
			if len(batch) != c.want || len(w.settlements) != c.waiting-c.want {
				t.Errorf("got %d settlements and %d left, want %d of %d", len(batch), len(w.settlements), c.want, c.waiting)
			}
			if at.IsZero() != (c.at == 0) || !at.IsZero() && at.Sub(noon) != c.at {
				t.Errorf("asks again at %v, want %v after noon", at, c.at)
			}
		})
	}
}

func TestWriter_TwoBatchesAtOnce(t *testing.T) {
	w := waiting(500)
	first, _ := w.nextBatch(noon, false)
	second, _ := w.nextBatch(noon, false)
	third, _ := w.nextBatch(noon.Add(time.Hour), true)
	if len(first) != 192 || len(second) != 192 || third != nil {
		t.Fatalf("got %d, %d and %d settlements, want 192, 192 and none", len(first), len(second), len(third))
	}
	w.settled(first)
	if third, _ = w.nextBatch(noon.Add(time.Hour), false); len(third) != 116 || w.settling != 2 {
		t.Errorf("got %d settlements with %d batches under way, want 116 with 2", len(third), w.settling)
	}
}

func TestWriter_SettleFrom(t *testing.T) {
	w := waiting(1)
	w.settle(noon.Add(-time.Hour), Settlement{})
	w.release(noon, Release{})
	w.release(noon.Add(-time.Hour), Release{})
	if !w.settleFrom.Equal(noon) || !w.releaseFrom.Equal(noon) || len(w.settlements) != 2 || len(w.releases) != 2 {
		t.Errorf("got %v and %v, want the time of the first", w.settleFrom, w.releaseFrom)
	}
}

func TestWriter_NextReleases(t *testing.T) {
	for name, c := range map[string]struct {
		after time.Duration
		quiet bool
		want  int
	}{
		"too young":              {40*time.Millisecond - 1, false, 0},
		"old enough":             {40 * time.Millisecond, false, 1},
		"no read is in flight":   {0, true, 1},
		"quiet, but retry later": {-1, true, 0},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := &writer{}
			w.release(noon, Release{})
			rows, at := w.nextReleases(noon.Add(c.after), c.quiet)
			if len(rows) != c.want || w.releasing != (c.want > 0) || len(w.releases) != 1-c.want {
				t.Errorf("got %d rows, want %d", len(rows), c.want)
			}
			if c.want == 0 && at.Sub(noon) != 40*time.Millisecond {
				t.Errorf("asks again %v after noon, want 40 ms", at.Sub(noon))
			}
		})
	}
	w := &writer{releases: []Release{{}}, releasing: true}
	if rows, _ := w.nextReleases(noon, true); rows != nil {
		t.Error("two releases are written at once")
	}
	w = &writer{}
	if rows, at := w.nextReleases(noon, true); rows != nil || !at.IsZero() || w.releasing {
		t.Error("an empty release is written")
	}
}

func TestWriter_Full(t *testing.T) {
	w := &writer{}
	answer := Settlement{Final: make([]byte, 4<<20)}
	w.settle(noon, answer)
	w.settle(noon, Settlement{Final: answer.Final[1:]})
	if w.full() {
		t.Error("full a byte below 8 MiB")
	}
	w.settle(noon, Settlement{Final: make([]byte, 1)})
	if !w.full() {
		t.Error("not full at 8 MiB")
	}
	w.settled([]Settlement{answer})
	if w.full() || w.bytes != 4<<20 {
		t.Errorf("%d bytes after a batch was written, want 4 MiB", w.bytes)
	}
}

func TestWriter_Idle(t *testing.T) {
	for name, w := range map[string]writer{
		"a settlement waits":       {settlements: []Settlement{{}}},
		"a batch is written":       {settling: 1},
		"a release waits":          {releases: []Release{{}}},
		"a release is written":     {releasing: true},
		"nothing waits: idle":      {},
		"written bytes: also idle": {bytes: 1},
	} {
		if want := len(w.settlements)+w.settling+len(w.releases) == 0 && !w.releasing; w.idle() != want {
			t.Errorf("%s: got %v, want %v", name, w.idle(), want)
		}
	}
}

func TestBatchLength(t *testing.T) {
	sizes := func(mebibytes ...float64) (waiting []Settlement) {
		for _, m := range mebibytes {
			waiting = append(waiting, Settlement{Final: make([]byte, int(m*(1<<20)))})
		}
		return waiting
	}
	for name, c := range map[string]struct {
		waiting []Settlement
		want    int
	}{
		"nothing":             {nil, 0},
		"small answers":       {make([]Settlement, 191), 191},
		"a full batch":        {make([]Settlement, 192), 192},
		"more than a batch":   {make([]Settlement, 400), 192},
		"just 2 MiB":          {sizes(1, 1, 0), 3},
		"over 2 MiB":          {sizes(1, 1, 0.1, 0), 2},
		"one answer of 3 MiB": {sizes(3, 0), 1},
		"3 MiB behind others": {sizes(0, 0, 3), 2},
	} {
		if got := batchLength(c.waiting); got != c.want {
			t.Errorf("%s: got %d, want %d", name, got, c.want)
		}
	}
}
