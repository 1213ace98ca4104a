package poller_test

import (
	"slices"
	"testing"

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
	if len(all) != 13 || slices.Contains(all, poller.StatePending) {
		t.Errorf("%d states: %q", len(all), all)
	}
}

func TestSucceeded(t *testing.T) {
	t.Parallel()
	var got []string
	for _, state := range append(poller.FinishedStates(), "moderated", "") {
		if poller.Succeeded(state) {
			got = append(got, state)
		}
	}
	if want := []string{"completed", "complete", "success", "succeeded", "ready"}; !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}
