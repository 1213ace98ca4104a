package jobs

import (
	"iter"

	"sumepoller/internal/poller"
)

// partBytes bounds the terminal answers that one statement carries: an answer
// can be a mebibyte, and a batch of such would be in memory several times over.
const partBytes = 4 << 20

// parts yields the batch in runs whose answers are no larger together than
// partBytes, or that are one row.
func parts(batch []poller.Settlement) iter.Seq[[]poller.Settlement] {
	return func(yield func([]poller.Settlement) bool) {
		start, size := 0, 0
		for i, s := range batch {
			if i > start && size+len(s.Final) > partBytes {
				if !yield(batch[start:i]) {
					return
				}
				start, size = i, 0
			}
			size += len(s.Final)
		}
		if start < len(batch) {
			yield(batch[start:])
		}
	}
}

// columns are a batch of settlements, column by column, in a form that Postgres
// takes.
type columns struct {
	keys
	delays                   []int64
	polled                   []bool
	statuses, errors, finals []string
	notFound                 []int64
}

func columnsOf(batch []poller.Settlement) columns {
	c := columns{
		keys:     keys{make([]string, len(batch)), make([]string, len(batch)), make([]string, len(batch)), make([]bool, len(batch))},
		delays:   make([]int64, len(batch)),
		polled:   make([]bool, len(batch)),
		statuses: make([]string, len(batch)),
		errors:   make([]string, len(batch)),
		finals:   make([]string, len(batch)),
		notFound: make([]int64, len(batch)),
	}
	for i, s := range batch {
		state := s.State
		if state == "" {
			state = poller.StatePending
		}
		c.ids[i], c.leases[i], c.states[i] = cleanText(s.JobID), uuid(s.Lease), cleanText(state)
		c.delays[i], c.polled[i] = micros(s.Delay), s.Polled
		c.statuses[i], c.errors[i] = cleanText(s.Status), cleanText(s.Error)
		c.finals[i], c.notFound[i] = cleanJSON(s.Final), int64(s.NotFound)
		c.refused[i] = s.Class == poller.WriteRefused
	}
	return c
}
