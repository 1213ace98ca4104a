package requests

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/jackc/pgx/v5"

	"sumepoller/internal/operator"
	"sumepoller/internal/poller"
)

// maxNotedStates bounds the states that a note lists.
const maxNotedStates = 20

// stateNote names the request's states that no row is in, and the states that
// exist. It is empty if each has a row. It counts the table's states, within
// the bounds of an inspect, only if the selected rows are not enough to decide.
//
// In a table too large to be counted, a state may have rows that a limit or a
// window left out. Such a state is not named.
func stateNote(ctx context.Context, tx pgx.Tx, b operator.Backfill, rows *backfillRows) (string, error) {
	absent := slices.DeleteFunc(slices.Clone(b.States), func(state string) bool { return rows.states[state] })
	if len(absent) == 0 {
		return "", nil
	}
	counts, exact, err := states(ctx, tx)
	if err != nil {
		return "", err
	}
	narrowed := b.CreatedAfter != nil || b.CreatedBefore != nil || b.Limit > 0 && len(rows.ids) >= b.Limit
	absent = slices.DeleteFunc(absent, func(state string) bool { return counts[state] > 0 || !exact && narrowed })
	if len(absent) == 0 {
		return "", nil
	}
	for i, state := range absent {
		absent[i] = fmt.Sprintf("%q", state)
	}
	return fmt.Sprintf("no finished row is in state %s; %s", strings.Join(absent, " or "), finishedStates(counts, exact)), nil
}

// finishedStates lists the states of finished rows, the most frequent first.
func finishedStates(counts map[string]int, exact bool) string {
	delete(counts, poller.StatePending)
	if len(counts) == 0 {
		return "the table holds no finished row"
	}
	names := slices.SortedFunc(maps.Keys(counts), func(x, y string) int {
		return cmp.Or(cmp.Compare(counts[y], counts[x]), cmp.Compare(x, y))
	})
	var listed []string
	for _, name := range names[:min(len(names), maxNotedStates)] {
		shown := name
		if quoted := fmt.Sprintf("%q", name); quoted != `"`+name+`"` || name == "" || strings.ContainsAny(name, " ,;") {
			shown = quoted
		}
		listed = append(listed, fmt.Sprintf("%s %d", shown, counts[name]))
	}
	more := ""
	if len(names) > len(listed) {
		more = fmt.Sprintf(" and %d more", len(names)-len(listed))
	}
	atLeast := ""
	if !exact {
		atLeast = ", at least"
	}
	return "states in the table" + atLeast + ": " + strings.Join(listed, ", ") + more
}
