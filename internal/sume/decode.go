package sume

import (
	"bytes"
	"encoding/json"
	"errors"
	"slices"

	"sumepoller/internal/poller"
)

// Why an answer is malformed.
var (
	errNotObject  = errors.New("not an object")
	errRepeated   = errors.New("a field is repeated")
	errTerminal   = errors.New("terminal is not a boolean")
	errStatus     = errors.New("unusable status")
	errJob        = errors.New("job is not an object")
	errOtherJob   = errors.New("answer for another job")
	errEmpty      = errors.New("neither terminal nor a status")
	errNoStatus   = errors.New("terminal without a status")
	errContradict = errors.New("terminal and status contradict")
	errNotJSON    = errors.New("not JSON")
)

// decoded is what a well-formed answer to a read says.
type decoded struct {
	terminal bool
	status   string
	nextPoll []byte // next_poll_after_seconds as JSON text; nil if absent
}

// decode reads the answer to a read of the job. It returns errNotJSON only for
// a body that is not JSON.
func decode(body []byte, jobID string) (decoded, error) {
	if !json.Valid(body) {
		return decoded{}, errNotJSON
	}
	answer, ok := readObject(body)
	if !ok {
		return decoded{}, errNotObject
	}
	if data, ok := readObject(answer.get("data")); ok && !answer.repeated && data.isAnswer() {
		answer = data
	}
	job, ok := readObject(answer.get("job"))
	switch {
	case answer.repeated:
		return decoded{}, errRepeated
	case !ok && given(answer.get("job")):
		return decoded{}, errJob
	case job.repeated:
		return decoded{}, errRepeated
	case !matches(answer.get("job_id"), jobID), !matches(job.get("id"), jobID):
		return decoded{}, errOtherJob
	}
	d := decoded{nextPoll: answer.get("next_poll_after_seconds")}
	var err error
	if d.status, err = firstStatus(answer.get("sume_status"), job.get("status"), answer.get("status")); err != nil {
		return d, err
	}
	d.terminal, err = isTerminal(answer.get("terminal"), d.status)
	return d, err
}

// isAnswer reports whether the object in data is the answer.
func (o object) isAnswer() bool {
	for _, name := range []string{"terminal", "sume_status", "status", "job"} {
		if o.get(name) != nil {
			return true
		}
	}
	return false
}

// matches reports whether a field with a job's id, if it is there, has this one.
func matches(value []byte, jobID string) bool {
	switch {
	case !given(value):
		return true
	case isString(value):
		id := unquote(value)
		return len(id) == 0 || string(id) == jobID
	}
	return string(value) == jobID // an id of digits, sent as a number
}

// isTerminal applies the rules for terminal and the status beside it.
func isTerminal(terminal []byte, status string) (bool, error) {
	switch {
	case !given(terminal) && status == "":
		return false, errEmpty
	case !given(terminal):
		return ended[status], nil
	case string(terminal) == "true" && status == "":
		return false, errNoStatus
	case string(terminal) == "true" && underway[status], string(terminal) == "false" && ended[status]:
		return false, errContradict
	case string(terminal) != "true" && string(terminal) != "false":
		return false, errTerminal
	}
	return string(terminal) == "true", nil
}

// The statuses that decide where terminal is absent. Where it says otherwise,
// the answer is malformed.
var (
	ended    = set(poller.TerminalStatuses())
	underway = set([]string{"pending", "queued", "processing", "running", "in_progress"})
)

func set(words []string) map[string]bool {
	all := map[string]bool{}
	for _, word := range words {
		all[word] = true
	}
	return all
}

// maxStatus is the longest status, in bytes.
const maxStatus = 64

// firstStatus returns the first status among the values. null and whitespace
// are none. A status is trimmed and in lower case. Only ASCII letters are
// changed: Unicode folding would turn letters of other alphabets into them.
func firstStatus(values ...[]byte) (string, error) {
	for _, value := range values {
		if !given(value) {
			continue
		}
		if !isString(value) {
			return "", errStatus
		}
		status := slices.Clone(bytes.TrimSpace(unquote(value)))
		if len(status) == 0 {
			continue
		}
		if len(status) > maxStatus {
			return "", errStatus
		}
		for i, c := range status {
			switch {
			case 'A' <= c && c <= 'Z':
				status[i] += 'a' - 'A'
			case 'a' <= c && c <= 'z', '0' <= c && c <= '9', c == '_', c == '-':
			default:
				return "", errStatus
			}
		}
		return string(status), nil
	}
	return "", nil
}
