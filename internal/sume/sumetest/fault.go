package sumetest

import (
	"bytes"
	"io"
	"net"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Fault is a simulated fault. Without Status and Body the API gives its normal
// answer, changed by the other fields.
type Fault struct {
	From   int // first request it applies to, counted from 1; 0: the first. Posts count from SetPostFault
	Times  int // how many requests it applies to; 0: all
	Status int // 0: 200
	Header map[string]string
	Body   string        // {id} is replaced by the job's id
	Size   int           // the body is padded with spaces to this many bytes
	Gzip   bool          // compressed, even if the request does not accept it
	Delay  time.Duration // before the header
	Drip   time.Duration // before each byte of the body
	Break  string        // how the connection ends; see BreakReset
	Make   bool          // of a post: the job is bought first
}

// How a fault ends the connection.
const (
	BreakReset    = "reset"    // reset before the header
	BreakClose    = "close"    // closed before the header
	BreakHang     = "hang"     // no header until the client disconnects
	BreakCut      = "cut"      // half of the body, with the full Content-Length
	BreakChunked  = "chunked"  // half of the body in chunks, without the last one
	BreakNoLength = "nolength" // half of the body without a length, then closed
)

// SetFault replaces the faults for reads of one job, or of any job if id is
// empty. Without faults it removes them. The first fault that applies is used,
// those of the job before those of any job. Requests are counted from the first
// read of the job, or of the API.
func (a *API) SetFault(id string, faults ...Fault) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.faults[id] = faults
}

// SetPostFault replaces the faults of posts, counted from now on.
func (a *API) SetPostFault(faults ...Fault) {
	a.mu.Lock()
	defer a.mu.Unlock()
	faults = slices.Clone(faults)
	for i := range faults {
		faults[i].From = max(faults[i].From, 1) + len(a.seen.Posts)
	}
	a.postFaults = faults
}

// fault returns the fault for a read, by its number among the reads of its job,
// or among all. The caller holds the lock.
func (a *API) fault(id string, j *job) Fault {
	if f := pick(a.faults[id], j.seen.Reads); f.any() {
		return f
	}
	return pick(a.faults[""], a.seen.Reads)
}

func pick(faults []Fault, number int) Fault {
	for _, f := range faults {
		from := max(f.From, 1)
		if number >= from && (f.Times == 0 || number < from+f.Times) {
			return f
		}
	}
	return Fault{}
}

func (f Fault) replaces() bool { return f.Status != 0 || f.Body != "" || f.Break == BreakHang }

func (f Fault) any() bool {
	return f.replaces() || f.Header != nil || f.Size > 0 || f.Gzip || f.Delay > 0 || f.Drip > 0 || f.Break != ""
}

// write answers with the fault. It calls leave before the client can see the end.
func (f Fault) write(w http.ResponseWriter, r *http.Request, id string, body []byte, leave func()) {
	if !pause(r, f.Delay) {
		return
	}
	switch f.Break {
	case BreakHang:
		<-r.Context().Done()
		return
	case BreakReset, BreakClose:
		leave()
		hangUp(w, f.Break == BreakReset)
		return
	}
	if f.Drip == 0 {
		leave()
	}
	status := f.Status
	if status == 0 {
		status = http.StatusOK
	}
	switch {
	case f.Body != "":
		body = []byte(strings.ReplaceAll(f.Body, "{id}", id))
	case f.Status >= http.StatusBadRequest:
		body = errorBody(f.Status, errorCodes[f.Status])
	}
	h := w.Header()
	h.Set("Content-Type", "application/json")
	for name, value := range f.Header {
		h.Set(name, value)
	}
	if status < http.StatusOK || status == http.StatusNoContent || status == http.StatusNotModified {
		w.WriteHeader(status)
		return
	}
	f.send(w, r, status, body)
}

func (f Fault) send(w http.ResponseWriter, r *http.Request, status int, body []byte) {
	if f.Gzip {
		w.Header().Set("Content-Encoding", "gzip")
		w.WriteHeader(status)
		sendZipped(w, r, body, f.Size-len(body))
		return
	}
	if f.Size > len(body) {
		body = append(body, bytes.Repeat([]byte(" "), f.Size-len(body))...)
	}
	switch f.Break {
	case BreakCut:
		w.Header().Set("Content-Length", strconv.Itoa(len(body)))
		body = body[:len(body)/2]
	case BreakChunked:
		body = body[:len(body)/2]
	case BreakNoLength:
		noLength(w, status, body[:len(body)/2])
		return
	}
	w.WriteHeader(status)
	drip(w, r, body, f.Drip)
	if f.Break != "" {
		_ = http.NewResponseController(w).Flush()
		panic(http.ErrAbortHandler)
	}
}

func drip(w http.ResponseWriter, r *http.Request, body []byte, every time.Duration) {
	if every <= 0 {
		_, _ = w.Write(body)
		return
	}
	flush := http.NewResponseController(w)
	for i := range body {
		_ = flush.Flush()
		if !pause(r, every) {
			return
		}
		_, _ = w.Write(body[i : i+1])
	}
}

// hangUp closes or resets the connection without an answer.
func hangUp(w http.ResponseWriter, reset bool) {
	conn, _, err := http.NewResponseController(w).Hijack()
	if err != nil { // HTTP/2: the stream alone is reset
		panic(http.ErrAbortHandler)
	}
	if tcp, ok := conn.(*net.TCPConn); ok && reset {
		_ = tcp.SetLinger(0)
	}
	_ = conn.Close()
}

// noLength answers as HTTP/1.0 servers do: the connection closes after the body.
func noLength(w http.ResponseWriter, status int, body []byte) {
	conn, _, err := http.NewResponseController(w).Hijack()
	if err != nil {
		panic(http.ErrAbortHandler)
	}
	defer func() { _ = conn.Close() }()
	_, _ = io.WriteString(conn, "HTTP/1.1 "+strconv.Itoa(status)+" "+http.StatusText(status)+
		"\r\nContent-Type: application/json\r\nConnection: close\r\n\r\n"+string(body))
}
