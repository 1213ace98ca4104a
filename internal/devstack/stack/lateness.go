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

// lateness is how late reads were, after the functions' own metrics.
type lateness struct {
	reads         int
	p50, p99, max time.Duration
}

// metricsLine is what of a line of metrics matters here; the names are those
// of internal/telemetry.
type metricsLine struct {
	Reads           int
	LatenessSeconds struct {
		Values []float64
		Counts []int
	}
}

// late is one value of a histogram.
type late struct {
	seconds float64
	count   int
}

// readLateness gathers the lateness of all reads from the functions' logs.
func readLateness(functions []*devstack.Function) lateness {
	var all []late
	for _, f := range functions {
		lines := bufio.NewScanner(strings.NewReader(f.Log()))
		lines.Buffer(nil, 1<<20)
		for lines.Scan() {
			var m metricsLine
			// A run that read nothing tells one zero; it was late for nothing.
			if json.Unmarshal(lines.Bytes(), &m) != nil || m.Reads == 0 {
				continue
			}
			for i, seconds := range m.LatenessSeconds.Values {
				all = append(all, late{seconds, m.LatenessSeconds.Counts[i]})
			}
		}
	}
	return percentiles(all)
}

func percentiles(all []late) lateness {
	slices.SortFunc(all, func(a, b late) int {
		switch {
		case a.seconds < b.seconds:
			return -1
		case a.seconds > b.seconds:
			return 1
		}
		return 0
	})
	var l lateness
	for _, v := range all {
		l.reads += v.count
	}
	at := func(share float64) time.Duration {
		rank := int(math.Ceil(share * float64(l.reads)))
		for _, v := range all {
			if rank -= v.count; rank <= 0 {
				return time.Duration(v.seconds * float64(time.Second))
			}
		}
		return 0
	}
	l.p50, l.p99, l.max = at(0.5), at(0.99), at(1)
	return l
}
