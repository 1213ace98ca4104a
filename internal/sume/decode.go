package sume

import (
	"encoding/json"
	"errors"

	"sumepoller/internal/poller"
)

// Why a JSON answer is malformed.
var (
	errNotObject  = errors.New("not an object")
	errTwice      = errors.New("a field stands twice")
	errTerminal   = errors.New("terminal is no boolean")
	errWord       = errors.New("unusable status")
	errJob        = errors.New("job is no object")
	errOtherJob   = errors.New("answer for another job")
	errNothing    = errors.New("neither terminal nor a status")
	errNoWord     = errors.New("terminal without a status")
	errContradict = errors.New("terminal and status contradict")
	errNotJSON    = errors.New("not JSON")
)

// members are the fields of an answer that are read, as their JSON text; nil
// where the field is absent. Names match exactly.
type members struct {
	terminal, sumeStatus, status, job, jobID, id, nextPoll []byte
	data, requestID, failure, hit                          []byte
	twice                                                  bool // one that decides stands twice
}

// readMembers reads the fields of an object; ok is false where text is none.
func readMembers(text []byte) (m members, ok bool) {
	walk, ok := openObject(text)
	if !ok {
		return m, false
	}
	for {
		name, value, more := walk.next()
		if !more {
			return m, true
		}
		if slot := m.slot(name); slot != nil {
			m.twice = m.twice || *slot != nil && slot != &m.requestID && slot != &m.nextPoll
			*slot = value
		}
	}
}

func (m *members) slot(name []byte) *[]byte {
	switch string(name) {
	case "terminal":
		return &m.terminal
	case "sume_status":
		return &m.sumeStatus
	case "status":
		return &m.status
	case "job":
		return &m.job
	case "job_id":
		return &m.jobID
	case "id":
		return &m.id
	case "next_poll_after_seconds":
		return &m.nextPoll
	case "data":
		return &m.data
	case "request_id":
		return &m.requestID
	case "error":
		return &m.failure
	case "idempotency_hit":
		return &m.hit
	}
	return nil
}

// verdict is what a well-formed answer to a read says.
type verdict struct {
	terminal bool
	status   string
	nextPoll []byte // the text of next_poll_after_seconds; nil where absent
}

// decode reads the answer to a read of the job. Its errors are a few fixed
// words each. A body that is JSON and malformed gives another error than
// errNotJSON.
func decode(body []byte, jobID string) (verdict, error) {
	if !json.Valid(body) {
		return verdict{}, errNotJSON
	}
	m, ok := readMembers(body)
	if !ok {
		return verdict{}, errNotObject
	}
	if m.data != nil && !m.twice {
		if inner, ok := readMembers(m.data); ok && inner.answers() {
			m = inner
		}
	}
	if m.twice {
		return verdict{}, errTwice
	}
	job, ok := readMembers(m.job)
	switch {
	case !ok && given(m.job):
		return verdict{}, errJob
	case job.twice:
		return verdict{}, errTwice
	case !names(m.jobID, jobID), !names(job.id, jobID):
		return verdict{}, errOtherJob
	}
	return judge(m, job)
}

// answers tells whether an object in data holds what an answer is read from.
func (m *members) answers() bool {
	return m.terminal != nil || m.sumeStatus != nil || m.status != nil || m.job != nil
}

// names tells whether a field that holds a job's id, if it is there, holds
// this one.
func names(value []byte, jobID string) bool {
	switch {
	case !given(value):
		return true
	case isString(value):
		id := unquote(value)
		return len(id) == 0 || string(id) == jobID
	}
	return string(value) == jobID // an id in digits, written as a number
}

func judge(m, job members) (verdict, error) {
	v := verdict{nextPoll: m.nextPoll}
	status, err := word(m.sumeStatus, job.status, m.status)
	if err != nil {
		return v, err
	}
	v.status = status
	switch {
	case !given(m.terminal):
		v.terminal = ended[status]
		if status == "" {
			return v, errNothing
		}
	case string(m.terminal) == "true":
		v.terminal = true
		switch {
		case status == "":
			return v, errNoWord
		case underway[status]:
			return v, errContradict
		}
	case string(m.terminal) == "false":
		if ended[status] {
			return v, errContradict
		}
	default:
		return v, errTerminal
	}
	return v, nil
}

// ended and underway are the words that decide where terminal is absent, and
// contradict it where it says otherwise.
var (
	ended    = wordSet(poller.TerminalStatuses())
	underway = wordSet([]string{"pending", "queued", "processing", "running", "in_progress"})

	known = func() map[string]string {
		words := map[string]string{}
		for _, set := range []map[string]bool{ended, underway} {
			for w := range set {
				words[w] = w
			}
		}
		return words
	}()
)

func wordSet(words []string) map[string]bool {
	set := map[string]bool{}
	for _, w := range words {
		set[w] = true
	}
	return set
}
