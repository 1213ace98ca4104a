package poller_test

import (
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"sumepoller/internal/operator"
	"sumepoller/internal/poller"
)

func TestFinishedStates(t *testing.T) {
	t.Parallel()
	all := poller.FinishedStates()
	for _, state := range append(poller.TerminalStatuses(), poller.StateNotFound, operator.StateStopped) {
		if !slices.Contains(all, state) {
			t.Errorf("%q is missing", state)
		}
	}
	if len(all) != len(poller.TerminalStatuses())+2 || slices.Contains(all, poller.StatePending) {
		t.Errorf("%d states: %q", len(all), all)
	}
}

// docs/tables.md lists the states with who sets them, and says which ones are a
// success.
func TestFinishedStates_Documented(t *testing.T) {
	t.Parallel()
	page, err := os.ReadFile("../../docs/tables.md")
	if err != nil {
		t.Fatal(err)
	}
	_, table, _ := strings.Cut(string(page), "\n| `state` | how the job ended | set by |\n")
	table, _, _ = strings.Cut(table, "\n\n")
	var states, statuses, successes []string
	for _, row := range regexp.MustCompile("(?m)^\\| (`[^|]*) \\| ([^|]+) \\| ([^|]+) \\|$").FindAllStringSubmatch(table, -1) {
		for _, word := range regexp.MustCompile("`(\\w+)`").FindAllStringSubmatch(row[1], -1) {
			states = append(states, word[1])
			if row[3] == "Sume" {
				statuses = append(statuses, word[1])
			}
			if strings.HasPrefix(row[2], "Well.") {
				successes = append(successes, word[1])
			}
		}
	}
	if diff := cmp.Diff(states, poller.FinishedStates()); diff != "" {
		t.Errorf("states (-docs/tables.md +program):\n%s", diff)
	}
	if diff := cmp.Diff(statuses, poller.TerminalStatuses()); diff != "" {
		t.Errorf("terminal statuses (-docs/tables.md +program):\n%s", diff)
	}
	for _, state := range append(states, "moderated", "") {
		if got, want := poller.Succeeded(state), slices.Contains(successes, state); got != want {
			t.Errorf("Succeeded(%q) = %t, docs/tables.md says %t", state, got, want)
		}
	}
}

func TestSucceeded(t *testing.T) {
	t.Parallel()
	for state, want := range map[string]bool{"completed": true, "ready": true, "failed": false, "canceled": false, "moderated": false, "": false} {
		if got := poller.Succeeded(state); got != want {
			t.Errorf("%q: got %t, want %t", state, got, want)
		}
	}
}
