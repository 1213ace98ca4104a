package poller

// finishedStates lists every state that this program knows for a finished job.
// The decoder of answers, the metrics, the dashboard and the trial writes of
// the migrations take their words from it, or are tested against it.
var finishedStates = []struct {
	state   string
	api     bool // a terminal status: the API's word
	success bool // the video was made
}{
	{"completed", true, true},
	{"complete", true, true},
	{"success", true, true},
	{"succeeded", true, true},
	{"ready", true, true},
	{"failed", true, false},
	{"error", true, false},
	{"errored", true, false},
	{"canceled", true, false},
	{"cancelled", true, false},
	{"expired", true, false},
	{StateNotFound, false, false},
	{"stopped", false, false}, // operator.StateStopped
}

// TerminalStatuses returns the API's words that finish a job where the answer
// has no `terminal` field. Where it has one, other words finish a job too.
func TerminalStatuses() []string {
	var words []string
	for _, s := range finishedStates {
		if s.api {
			words = append(words, s.state)
		}
	}
	return words
}

// FinishedStates returns the terminal statuses, not_found and stopped.
func FinishedStates() []string {
	states := make([]string, len(finishedStates))
	for i, s := range finishedStates {
		states[i] = s.state
	}
	return states
}

// Succeeded reports whether a finished state means that the video was made. A
// state that is not in the list does not.
func Succeeded(state string) bool {
	for _, s := range finishedStates {
		if s.state == state {
			return s.success
		}
	}
	return false
}
