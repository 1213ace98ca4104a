package sumetest

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strconv"
)

// Codes of a 409.
const (
	CodeInProgress = "idempotency_in_progress" // another post with this key is being answered
	CodeMismatch   = "idempotency_conflict"    // another body has this key
)

// The field with the job's id in the answer to a post.
const (
	IDInData        = ""           // data.job_id and data.job.id
	IDInJob         = "job.id"     // job.id, without data
	IDPlain         = "id"         // id, without data
	IDFlat          = "job_id"     // job_id, without data
	IDOnlyInRequest = "request_id" // request_id alone
	IDNowhere       = "none"
)

// order is a job that was bought with an idempotency key.
type order struct {
	body    string
	jobID   string
	pending bool // its post is being answered
}

// post answers POST /v1/videos.
func (a *API) post(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(io.LimitReader(r.Body, 4<<20))
	if err != nil {
		return
	}
	a.mu.Lock()
	number := len(a.seen.Posts)
	a.seen.Posts = append(a.seen.Posts, Post{Key: r.Header.Get("Idempotency-Key"), Body: string(body)})
	a.seen.Hosts[r.Host] = key(r)
	var (
		status = http.StatusUnauthorized
		fault  Fault
		answer []byte
	)
	if a.authorized(r) {
		status, fault = http.StatusOK, pick(a.postFaults, number+1)
		if !fault.replaces() || fault.Make {
			status, answer = a.buy(number)
		}
	}
	wait := a.latency()
	a.mu.Unlock()
	arrived := pause(r, wait) && pause(r, fault.Delay)
	a.mu.Lock()
	if o := a.orders[a.seen.Posts[number].Key]; o != nil && status == http.StatusAccepted {
		o.pending = false
	}
	a.seen.Posts[number].Status = status
	if fault.Status != 0 {
		a.seen.Posts[number].Status = fault.Status
	}
	a.mu.Unlock()
	if fault.Delay = 0; !arrived {
		return
	}
	if fault.any() {
		if fault.Status == 0 && fault.Break == "" {
			fault.Status = status
		}
		fault.write(w, r, "", answer, func() {})
		return
	}
	if answer == nil {
		writeError(w, status)
		return
	}
	writeJSON(w, status, answer)
}

// buy finds or creates the job of a post. The caller holds the lock.
func (a *API) buy(number int) (status int, answer []byte) {
	p := &a.seen.Posts[number]
	var video map[string]any
	if err := json.Unmarshal([]byte(p.Body), &video); err != nil || len(video) == 0 {
		return http.StatusUnprocessableEntity, errorBody(http.StatusUnprocessableEntity, "validation_error")
	}
	o := a.orders[p.Key]
	hit := p.Key != "" && o != nil
	switch {
	case hit && o.body != p.Body:
		return http.StatusConflict, errorBody(http.StatusConflict, CodeMismatch)
	case hit && o.pending:
		return http.StatusConflict, errorBody(http.StatusConflict, CodeInProgress)
	case !hit:
		a.seen.Billed++
		o = &order{body: p.Body, jobID: "job_bought_" + strconv.Itoa(a.seen.Billed), pending: true}
		a.orders[p.Key] = o
		a.addJob(o.jobID, a.options.Bought)
	}
	p.JobID = o.jobID
	return http.StatusAccepted, accepted(a.options.IDField, o.jobID, hit, number)
}

func accepted(field, id string, hit bool, number int) []byte {
	rest := fmt.Sprintf(`"status":"queued","idempotency_hit":%t`, hit)
	request := fmt.Sprintf(`,"request_id":"req_post_%d"`, number)
	switch field {
	case IDInJob:
		return fmt.Appendf(nil, `{"job":{"id":%q,"status":"queued"},%s%s}`, id, rest, request)
	case IDPlain, IDFlat:
		return fmt.Appendf(nil, `{%q:%q,%s%s}`, field, id, rest, request)
	case IDOnlyInRequest:
		return fmt.Appendf(nil, `{"request_id":%q,%s}`, id, rest)
	case IDNowhere:
		return fmt.Appendf(nil, `{%s}`, rest)
	}
	return fmt.Appendf(nil, `{"data":{"job_id":%q,"request_id":%[1]q,"job":{"id":%[1]q,"type":"video_generation","status":"queued"},%[2]s}%[3]s}`, id, rest, request)
}
