package stack

import (
	"slices"
	"time"
)

// WithDatabase is withDatabase for the tests.
var WithDatabase = withDatabase

// Percentiles returns the number of a histogram's values, and its percentiles.
func Percentiles(values []float64, counts []int) (reads int, p50, p99, most time.Duration) {
	all := histogram{values, counts}.expand()
	slices.Sort(all)
	return len(all), percentile(all, 0.5), percentile(all, 0.99), percentile(all, 1)
}
