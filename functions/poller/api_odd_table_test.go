package main_test

import (
	"strings"
	"time"

	"sumepoller/internal/sume/sumetest"
)

// oddity is an answer and the state of its row afterwards.
type oddity struct {
	fault sumetest.Fault
	state string        // where the row ends; empty: it stays pending
	class string        // of the read error; empty: none
	delay time.Duration // pending: until the next read, jitter apart
}

const backoff = 15 * time.Second

// oddities are odd answers by name. Fewer than twenty are errors that count as an
// API that is down, so that no order of them ends the run.
func oddities(elsewhere string) map[string]oddity {
	all := map[string]oddity{}
	for name, o := range badAnswers(elsewhere) {
		if o.delay == 0 {
			o.delay = backoff
		}
		all[name] = o
	}
	for name, body := range malformed {
		all[name] = oddity{fault: sumetest.Fault{Body: body}, class: "malformed", delay: backoff}
	}
	for name, given := range intervals {
		body := `{"terminal":false,"sume_status":"processing","next_poll_after_seconds":` + given.text + `}`
		all["interval "+name] = oddity{fault: sumetest.Fault{Body: body}, delay: given.want}
	}
	for name, body := range unfinished {
		all[name] = oddity{fault: sumetest.Fault{Body: body}, delay: 15 * time.Second}
	}
	for name, end := range ends {
		all[name] = oddity{fault: sumetest.Fault{Body: end.body}, state: end.state}
	}
	return all
}

// badAnswers are reads without a complete answer, and answers that are not about a
// job.
func badAnswers(elsewhere string) map[string]oddity {
	status := func(code int, class string) oddity {
		return oddity{fault: sumetest.Fault{Status: code}, class: class}
	}
	html := "<!doctype html><title>Sume</title>"
	return map[string]oddity{
		"400": status(400, "http_4xx 400"), "402": status(402, "http_4xx 402"), "403": status(403, "http_4xx 403"),
		"404": status(404, "http_4xx 404"), "408": status(408, "http_4xx 408"), "410": status(410, "http_4xx 410"),
		"422": status(422, "http_4xx 422"), "425": status(425, "http_4xx 425"), "500": status(500, "http_5xx 500"),
		"503 as HTML with Retry-After": {
			fault: sumetest.Fault{Status: 503, Body: html, Header: map[string]string{"Retry-After": "60", "Content-Type": "text/html"}},
			class: "http_5xx 503", delay: time.Minute,
		},
		"redirect to another host": {
			fault: sumetest.Fault{Status: 307, Body: "{}", Header: map[string]string{"Location": elsewhere}},
			class: "malformed 307",
		},
		"no header":               {fault: sumetest.Fault{Break: sumetest.BreakHang}, class: "timeout waiting for the answer"},
		"dripping body":           {fault: sumetest.Fault{Drip: 50 * time.Millisecond}, class: "timeout 200 reading the body"},
		"reset":                   {fault: sumetest.Fault{Break: sumetest.BreakReset}, class: "network"},
		"closed":                  {fault: sumetest.Fault{Break: sumetest.BreakClose}, class: "network"},
		"cut with a length":       {fault: sumetest.Fault{Break: sumetest.BreakCut}, class: "network 200"},
		"cut in chunks":           {fault: sumetest.Fault{Break: sumetest.BreakChunked}, class: "network 200"},
		"cut without a length":    {fault: sumetest.Fault{Break: sumetest.BreakNoLength}, class: "malformed 200"},
		"HTML":                    {fault: sumetest.Fault{Body: html, Header: map[string]string{"Content-Type": "text/html"}}, class: "malformed 200"},
		"HTML labelled JSON":      {fault: sumetest.Fault{Body: html}, class: "malformed 200"},
		"empty":                   {fault: sumetest.Fault{Status: 200}, class: "malformed 200"},
		"204":                     {fault: sumetest.Fault{Status: 204}, class: "malformed 204"},
		"byte-order mark":         {fault: sumetest.Fault{Body: "\ufeff" + done}, class: "malformed 200"},
		"3 MiB":                   {fault: sumetest.Fault{Size: 3 << 20}, class: "malformed 200 too large"},
		"256 MiB compressed":      {fault: sumetest.Fault{Gzip: true, Size: 256 << 20}, class: "malformed 200 too large"},
		"compressed by name only": {fault: sumetest.Fault{Body: done, Header: map[string]string{"Content-Encoding": "gzip"}}, class: "malformed 200"},
		"100,000 deep":            {fault: sumetest.Fault{Body: `{"terminal":true,"status":` + nested(100_000) + `}`}, class: "malformed 200"},
	}
}

const done = `{"terminal":true,"sume_status":"completed"}`

func nested(depth int) string { return strings.Repeat("[", depth) + strings.Repeat("]", depth) }

// malformed are JSON or almost JSON, and no answer.
var malformed = map[string]string{
	"null":                           `null`,
	"array":                          `[]`,
	"string":                         `"x"`,
	"number":                         `7`,
	"empty object":                   `{}`,
	"data an array":                  `{"data": []}`,
	"NaN":                            `{"terminal":NaN,"sume_status":"completed"}`,
	"terminal as string":             `{"terminal":"true","sume_status":"completed"}`,
	"terminal as number":             `{"terminal":1,"sume_status":"completed"}`,
	"status as number":               `{"terminal":true,"sume_status":3}`,
	"terminal twice":                 `{"terminal":false,"terminal":true,"sume_status":"completed"}`,
	"terminal without a status":      `{"terminal":true}`,
	"terminal with an empty status":  `{"terminal":true,"sume_status":" "}`,
	"terminal and pending":           `{"terminal":true,"sume_status":"pending"}`,
	"terminal and running":           `{"terminal":true,"sume_status":"RUNNING"}`,
	"not terminal and completed":     `{"terminal":false,"sume_status":"completed"}`,
	"status with a space in it":      `{"terminal":true,"sume_status":"all done"}`,
	"status of 65 letters":           `{"terminal":true,"sume_status":"` + strings.Repeat("a", 65) + `"}`,
	"status with a NUL":              `{"terminal":true,"sume_status":"completed\u0000"}`,
	"another job's id":               `{"data":{"job_id":"job_other","terminal":true,"sume_status":"completed"}}`,
	"another job's id inside":        `{"terminal":true,"sume_status":"completed","job":{"id":"job_other","status":"completed"}}`,
	"job a string":                   `{"terminal":true,"sume_status":"completed","job":"job_1"}`,
	"completed, but in data pending": `{"terminal":true,"sume_status":"completed","data":{"terminal":true,"sume_status":"pending"}}`,
}

// intervals are values of next_poll_after_seconds in a good answer.
var intervals = map[string]struct {
	text string
	want time.Duration
}{
	"negative":      {`-5`, 15 * time.Second},
	"zero":          {`0`, 15 * time.Second},
	"null":          {`null`, 15 * time.Second},
	"a fraction":    {`20.5`, 20500 * time.Millisecond},
	"as string":     {`"20"`, 20 * time.Second},
	"a word":        {`"soon"`, 15 * time.Second},
	"NaN as string": {`"NaN"`, 15 * time.Second},
	"1e3 as string": {`"1e3"`, 15 * time.Second},
	"an array":      {`[20]`, 15 * time.Second},
	"true":          {`true`, 15 * time.Second},
	"absurd":        {`1e300`, time.Hour},
	"past a float":  {`1e999`, time.Hour},
	"tiny":          {`1e-9`, time.Second},
}

// unfinished are good answers of jobs that are not finished, which could be
// mistaken for finished ones.
var unfinished = map[string]string{
	"keys in other case":         `{"STATUS":"completed","status":"processing"}`,
	"success around processing":  `{"status":"success","data":{"status":"processing"}}`,
	"unknown word, not terminal": `{"terminal":false,"sume_status":"polishing"}`,
	"the product's own state":    `{"sume_status":"pending"}`,
	"not terminal, no word":      `{"terminal":false}`,
}

// ends are good answers of finished jobs that hold something odd.
var ends = map[string]struct{ body, state string }{
	"upper case and spaces":    {`{"terminal":true,"sume_status":"  COMPLETED\t"}`, "completed"},
	"unknown word, terminal":   {`{"terminal":true,"sume_status":"abandoned"}`, "abandoned"},
	"NUL and half a pair":      {`{"terminal":true,"sume_status":"completed","note":"\u0000 \ud800"}`, "completed"},
	"number past jsonb":        {`{"terminal":true,"sume_status":"completed","n":1e999999}`, "completed"},
	"bytes that are not UTF-8": {"{\"terminal\":true,\"sume_status\":\"completed\",\"note\":\"\xff\xfe\"}", "completed"},
	"9,000 deep beside it":     {`{"terminal":true,"sume_status":"completed","n":` + nested(9000) + `}`, "completed"},
	"words alone":              {`{"data":{"job":{"status":"Cancelled"}}}`, "cancelled"},
	"data without an answer":   {`{"data":{"id":1},"status":"failed"}`, "failed"},
	"request_id names another": {`{"data":{"request_id":"job_other","terminal":true,"status":"expired"}}`, "expired"},
}
