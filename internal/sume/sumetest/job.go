package sumetest

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"time"
)

// Plan is the course of a job. It ends when both Reads and After are over.
type Plan struct {
	Reads int           // reads answered before the end
	After time.Duration // time since the job was added, bought or first read
	End   string        // the terminal status; empty: completed; see Never
	Hint  float64       // next_poll_after_seconds before the end; 0: left out
	Flat  bool          // the short form of the answer, without data
}

// Never, as the End of a plan, is a job that does not finish.
const Never = "never"

// SignedURL is in every long answer for a finished job. It may be written to the
// database and nowhere else.
const SignedURL = "https://cdn.sume.invalid/video.mp4?X-Signature=c2lnbmVkLXVybA"

type job struct {
	plan     Plan
	made     time.Time
	answered int // answered reads
	now      int // reads of it in flight
	seen     JobStats
}

// AddJob adds a job, or restarts it with another plan.
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

// status returns the status in the job's next answer, and whether it is terminal.
func (j *job) status() (status string, ended bool) {
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

// answer returns the body for a read and counts it. The caller holds the lock.
func (j *job) answer(id string, number int) []byte {
	status, ended := j.status()
	j.answered++
	j.seen.Ended = j.seen.Ended || ended
	var hint string
	if !ended && j.plan.Hint > 0 {
		hint = `,"next_poll_after_seconds":` + strconv.FormatFloat(j.plan.Hint, 'f', -1, 64)
	}
	if j.plan.Flat {
		return fmt.Appendf(nil, `{"terminal":%t,"sume_status":%q%s}`, ended, status, hint)
	}
	return long(quote(id), status, ended, hint, number)
}

func long(id, status string, ended bool, hint string, number int) []byte {
	action, result := "poll", ""
	if ended {
		action, result = "fetch_result", `,"assets":[{"type":"video","url":"`+SignedURL+`"}]`
	}
	return fmt.Appendf(make([]byte, 0, 512),
		`{"data":{"job_id":%s,"request_id":%[1]s,"status":%q,"sume_status":%q,"terminal":%t,"result_ready":%[4]t,"next_action":%q%s,`+
			`"job":{"id":%[1]s,"type":"video_generation","status":%[3]q}%[7]s},"request_id":"req_%[8]d"}`,
		id, strings.ToUpper(status), status, ended, action, hint, result, number)
}

func quote(s string) string {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	_ = enc.Encode(s)
	return strings.TrimSuffix(b.String(), "\n")
}
