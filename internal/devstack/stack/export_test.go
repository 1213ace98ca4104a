package stack

import "time"

// WithDatabase is withDatabase for the tests.
var WithDatabase = withDatabase

// Percentiles returns how late half, 99 in 100 and all of the reads were at
// most; each value counts as often as its count says.
func Percentiles(values []float64, counts []int) (reads int, p50, p99, most time.Duration) {
	all := make([]late, len(values))
	for i := range values {
		all[i] = late{values[i], counts[i]}
	}
	l := percentiles(all)
	return l.reads, l.p50, l.p99, l.max
}
