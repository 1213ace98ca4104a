package sumetest

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"time"
)

// Plan is how a job goes. The end shows once both Reads and After are past.
type Plan struct {
	Reads int           `json:"reads"` // answered unfinished before the end
	After time.Duration `json:"after"` // since the job was added, bought or first read
	End   string        `json:"end"`   // the terminal word; empty: completed; see Never
	Hint  float64       `json:"hint"`  // next_poll_after_seconds of unfinished answers; 0: left out
	Flat  bool          `json:"flat"`  // the short shape, without data around it
}

// Never as a plan's end is a job that stays unfinished.
const Never = "never"

// SignedURL stands in every long answer to a finished job: it belongs into the
// database at most.
const SignedURL = "https://cdn.sume.invalid/video.mp4?X-Signature=c2lnbmVkLXVybA"

type job struct {
	plan     Plan
	made     time.Time
	answered int // reads answered by the plan
	now      int // reads of it going on
	seen     JobStats
}

// AddJob adds a job, or starts it anew with another plan.
func (a *API) AddJob(id string, p Plan) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.addJob(id, p)
}

func (a *API) addJob(id string, p Plan) *job {
	j := a.jobs[id]
	if j == nil {
		j = &job{}
		a.jobs[id] = j
	}
	j.plan, j.made, j.answered = p, time.Now(), 0
	return j
}

// status returns the job's word at its next answer, and whether it is the end.
func (j *job) status() (word string, ended bool) {
	switch {
	case j.plan.End != Never && j.answered >= j.plan.Reads && time.Since(j.made) >= j.plan.After:
		if j.plan.End == "" {
			return "completed", true
		}
		return j.plan.End, true
	case j.answered == 0:
		return "queued", false
	}
	return "processing", false
}

// answer writes the body of a read and counts it. The caller holds the lock.
func (j *job) answer(id string, number int) []byte {
	word, ended := j.status()
	j.answered++
	j.seen.Ended = j.seen.Ended || ended
	var hint string
	if !ended && j.plan.Hint > 0 {
		hint = `,"next_poll_after_seconds":` + strconv.FormatFloat(j.plan.Hint, 'f', -1, 64)
	}
	if j.plan.Flat {
		return fmt.Appendf(nil, `{"terminal":%t,"sume_status":%q%s}`, ended, word, hint)
	}
	return long(quote(id), word, ended, hint, number)
}

func long(id, word string, ended bool, hint string, number int) []byte {
	action, result := "poll", ""
	if ended {
		action, result = "fetch_result", `,"assets":[{"type":"video","url":"`+SignedURL+`"}]`
	}
	return fmt.Appendf(make([]byte, 0, 512),
		`{"data":{"job_id":%s,"request_id":%[1]s,"status":%q,"sume_status":%q,"terminal":%t,"result_ready":%[4]t,"next_action":%q%s,`+
			`"job":{"id":%[1]s,"type":"video_generation","status":%[3]q}%[7]s},"request_id":"req_%[8]d"}`,
		id, strings.ToUpper(word), word, ended, action, hint, result, number)
}

func quote(s string) string {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	_ = enc.Encode(s)
	return strings.TrimSuffix(b.String(), "\n")
}
