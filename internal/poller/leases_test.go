package poller

import (
	"testing"
	"time"
)

func TestLeases(t *testing.T) {
	l := leases{}
	first, second := l.add(noon.Add(time.Minute)), l.add(noon.Add(time.Minute))
	if first.id == second.id || len(l.ids()) != 2 {
		t.Fatalf("got ids %v, want two", l.ids())
	}
	l.claimed(first.id, "2026-11-02", 2)
	l.claimed(second.id, "2026-11-02", 0)
	if ids := l.ids(); len(ids) != 1 || ids[0] != first.id || first.date != "2026-11-02" {
		t.Fatalf("got leases %v of %q, want the first alone", ids, first.date)
	}
	if !l.runs(noon, first.id) || !l.runs(noon.Add(time.Minute-1), first.id) || l.runs(noon.Add(time.Minute), first.id) || l.runs(noon, second.id) {
		t.Error("a lease runs until its end, and only where it has rows")
	}
	l.rowDone(second.id)
	l.rowDone(first.id)
	if len(l) != 1 {
		t.Fatal("a lease ended before its last row")
	}
	l.rowDone(first.id)
	if len(l) != 0 {
		t.Error("a lease outlasts its rows")
	}
}
