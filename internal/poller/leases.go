package poller

import (
	"crypto/rand"
	"maps"
	"slices"
	"time"
)

// lease is a claim with rows that are not yet settled or released.
type lease struct {
	id   LeaseID
	end  time.Time // monotonic, from before the claim was sent
	date string    // the UTC date whose count its reads were taken from
	rows int
}

// leases are those that a run holds or has asked for.
type leases map[LeaseID]*lease

// add makes a lease for a claim that is about to be sent.
func (l leases) add(end time.Time) *lease {
	var id LeaseID
	rand.Read(id[:])
	l[id] = &lease{id: id, end: end}
	return l[id]
}

// claimed records how many rows the claim returned; a lease without rows ends.
func (l leases) claimed(id LeaseID, date string, rows int) {
	if rows == 0 {
		delete(l, id)
		return
	}
	l[id].date, l[id].rows = date, rows
}

// rowDone records that one row of a lease was settled, released or lost.
func (l leases) rowDone(id LeaseID) {
	held := l[id]
	if held == nil {
		return
	}
	if held.rows--; held.rows == 0 {
		delete(l, id)
	}
}

// runs reports whether a lease has not expired.
func (l leases) runs(now time.Time, id LeaseID) bool {
	return l[id] != nil && now.Before(l[id].end)
}

// ids returns the leases' ids.
func (l leases) ids() []LeaseID { return slices.Collect(maps.Keys(l)) }
