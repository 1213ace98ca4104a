package stack

import (
	"bufio"
	"encoding/json"
	"math"
	"slices"
	"strings"
	"time"

	"sumepoller/internal/devstack"
)

// metricsLine holds the metrics of one run that the report needs. The names
// are those of internal/telemetry.
type metricsLine struct {
	Reads           int
	LatenessSeconds histogram
}

// histogram is a metric's values; each occurred as often as its count says.
type histogram struct {
	Values []float64
	Counts []int
}

// lateness returns the lateness of all reads, in seconds and sorted, from the
// metrics in the functions' logs.
func lateness(functions []*devstack.Function) []float64 {
	var all []float64
	for _, f := range functions {
		lines := bufio.NewScanner(strings.NewReader(f.Log()))
		lines.Buffer(nil, 1<<20)
		for lines.Scan() {
			var m metricsLine
			// A run without a read reports one value of 0.
			if json.Unmarshal(lines.Bytes(), &m) == nil && m.Reads > 0 {
				all = append(all, m.LatenessSeconds.expand()...)
			}
		}
	}
	slices.Sort(all)
	return all
}

func (h histogram) expand() []float64 {
	var all []float64
	for i, value := range h.Values {
		all = append(all, slices.Repeat([]float64{value}, h.Counts[i])...)
	}
	return all
}

// percentile returns the value that a share of the sorted values does not
// exceed.
func percentile(sorted []float64, share float64) time.Duration {
	if len(sorted) == 0 {
		return 0
	}
	seconds := sorted[int(math.Ceil(share*float64(len(sorted))))-1]
	return time.Duration(seconds * float64(time.Second)).Round(time.Millisecond)
}
