package sumetest

import (
	"cmp"
	"net/http"
	"strconv"
	"time"
)

// visit is one read in flight.
type visit struct {
	api  *API
	job  *job
	done bool
}

// read answers GET /v1/jobs/{id}/status.
func (a *API) read(w http.ResponseWriter, r *http.Request, id, path string) {
	a.mu.Lock()
	v, number := a.enter(r, id, path)
	status := a.admit(w.Header(), r)
	var (
		body  []byte
		fault Fault
		wait  = a.latency()
	)
	if status == http.StatusOK {
		a.seen.Answered++
		fault = a.fault(id, v.job)
		switch {
		case fault.replaces():
		case a.known(id):
			body = v.job.answer(id, number)
		default:
			status = http.StatusNotFound
		}
	}
	a.mu.Unlock()
	defer v.leave()
	if !pause(r, wait) {
		return
	}
	switch {
	case fault.any():
		fault.write(w, r, id, body, v.leave)
	case status != http.StatusOK:
		v.leave()
		writeError(w, status)
	default:
		v.leave()
		writeJSON(w, http.StatusOK, body)
	}
}

// enter counts the start of a read. The caller holds the lock.
func (a *API) enter(r *http.Request, id, path string) (*visit, int) {
	j := a.jobs[id]
	if j == nil {
		j = &job{made: time.Now(), plan: Plan{End: unknown}}
		if a.options.Unknown != nil {
			j.plan = *a.options.Unknown
		}
		a.jobs[id] = j
	}
	a.seen.Reads++
	a.times = append(a.times, time.Now())
	a.seen.Hosts[r.Host] = key(r)
	a.seen.InFlight++
	a.seen.MaxInFlight = max(a.seen.MaxInFlight, a.seen.InFlight)
	if j.now > 0 {
		a.seen.Overlapping++
	}
	j.now++
	j.seen.Reads++
	j.seen.Path = path
	return &visit{api: a, job: j}, a.seen.Reads
}

// unknown is the end of a job that was read but not added.
const unknown = "\x00unknown"

func (a *API) known(id string) bool { return a.jobs[id].plan.End != unknown }

// leave counts the end of a read. It is called before the last byte of the
// answer: after it the client may read again at once.
func (v *visit) leave() {
	v.api.mu.Lock()
	defer v.api.mu.Unlock()
	if v.done {
		return
	}
	v.done = true
	v.api.seen.InFlight--
	v.job.now--
}

// errorCodes are the codes of the API's errors, by HTTP status.
var errorCodes = map[int]string{
	http.StatusBadRequest:          "invalid_request",
	http.StatusUnauthorized:        "unauthorized",
	http.StatusPaymentRequired:     "insufficient_credits",
	http.StatusForbidden:           "forbidden",
	http.StatusNotFound:            "not_found",
	http.StatusGone:                "gone",
	http.StatusUnprocessableEntity: "validation_error",
	http.StatusTooManyRequests:     "rate_limit_exceeded",
	http.StatusServiceUnavailable:  "unavailable",
}

func writeError(w http.ResponseWriter, status int) {
	writeJSON(w, status, errorBody(status, cmp.Or(errorCodes[status], "error")))
}

func errorBody(status int, code string) []byte {
	return []byte(`{"error":{"code":"` + code + `","message":"` + http.StatusText(status) + `","details":{}},"request_id":"req_error"}`)
}

func writeJSON(w http.ResponseWriter, status int, body []byte) {
	h := w.Header()
	h["Content-Type"] = []string{"application/json"}
	h["Content-Length"] = []string{strconv.Itoa(len(body))}
	w.WriteHeader(status)
	_, _ = w.Write(body)
}
