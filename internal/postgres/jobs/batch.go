package jobs

import (
	"iter"

	"sumepoller/internal/poller"
	"sumepoller/internal/postgres/statement"
)

// partBytes bounds the terminal answers in one statement. An answer can have a
// mebibyte, and several copies of a batch are in memory.
const partBytes = 4 << 20

// parts yields parts of the batch whose answers have at most partBytes together,
// or that are one row.
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

// settleArgs returns a batch column by column, in a form that PostgreSQL accepts.
func settleArgs(batch []poller.Settlement) (keys, statement.Args) {
	n := len(batch)
	k := keys{make([]string, n), make([]string, n), make([]string, n), make([]bool, n)}
	delays, polled, notFound := make([]int64, n), make([]bool, n), make([]int64, n)
	statuses, errors, finals := make([]string, n), make([]string, n), make([]string, n)
	for i, s := range batch {
		state := s.State
		if state == "" {
			state = poller.StatePending
		}
		k.ids[i], k.leases[i], k.states[i] = cleanText(s.JobID), leaseText(s.Lease), cleanText(state)
		k.refused[i] = s.Class == poller.WriteRefused
		delays[i], polled[i], notFound[i] = s.Delay.Microseconds(), s.Polled, int64(s.NotFound)
		statuses[i], errors[i], finals[i] = cleanText(s.Status), cleanText(s.Error), cleanJSON(s.Final)
	}
	return k, statement.Args{
		"ids": k.ids, "leases": k.leases, "states": k.states, "refused": k.refused,
		"delays": delays, "polled": polled, "not_found": notFound, "statuses": statuses, "errors": errors, "finals": finals,
	}
}
