package cli_test

import (
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

const (
	order     = "functions/submit/testdata/payloads/order.json"
	inspected = `{"run_id": "r", "mode": "inspect", "at": "2026-11-02T12:00:00Z", "states": {}}`
	submitted = `{"job_id": "job_1", "state": "pending", "idempotency_hit": false}`
	unknown   = "whether the order was sent is unknown: run it again with the same key"
)

// invocation runs a target's request against an address and returns its
// error's line; an empty one means that it succeeded.
func invocation(t *testing.T, what, address string, env ...string) string {
	t.Helper()
	env = append(env, "FUNCTION_URL="+address)
	if what == "submit" {
		env = append(env, "FILE="+order)
	}
	code, out, line := run(t, env, "", what)
	failed := code == 1 && out == "" && strings.HasPrefix(line, "make "+what+": ") && strings.Count(line, "\n") == 1
	if succeeded := code == 0 && line == ""; !failed && !succeeded {
		t.Errorf("exit code %d, output %q, error %q: want 0 and the answer, or 1 and one line", code, out, line)
	}
	return line
}

// answer is a fixed answer of an HTTP server.
type answer struct {
	status       int
	header, body string
}

func (a answer) serve(t *testing.T) string {
	t.Helper()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if name, value, ok := strings.Cut(a.header, ": "); ok {
			w.Header().Set(name, value)
		}
		if r.Method != http.MethodPost {
			t.Errorf("asked with %s", r.Method)
		}
		w.WriteHeader(a.status)
		_, _ = w.Write([]byte(a.body))
	}))
	t.Cleanup(server.Close)
	return server.URL
}

// A script must not take an answer of something else for a function's.
func TestPost_Answers(t *testing.T) {
	t.Parallel()
	const (
		text, page = "Content-Type: application/json", "<!doctype html><title>Secret</title>"
		forbidden  = `{"Message": "Forbidden"}`
	)
	large := `{"mode": "inspect", "job_id": "job_1", "state": "pending", "x": "` + strings.Repeat("x", 6<<20) + `"}`
	for name, c := range map[string]struct {
		answer
		want string // in both lines
	}{
		"403":             {answer{403, text, forbidden}, "answers 403 Forbidden with application/json"},
		"500":             {answer{500, text, forbidden}, "answers 500 Internal Server Error"},
		"502":             {answer{502, text, forbidden}, "answers 502 Bad Gateway"},
		"404 page":        {answer{404, "Content-Type: text/html; charset=utf-8", page}, "answers 404 Not Found with text/html"},
		"413":             {answer{413, "", "request body too large"}, "answers 413 Request Entity Too Large"},
		"429":             {answer{429, text, `{}`}, "answers 429 Too Many Requests"},
		"503 no type":     {answer{503, "Content-Type: ", ""}, "answers 503 Service Unavailable"},
		"301":             {answer{301, "Location: https://user:Secret@127.0.0.1:1/", ""}, "redirects are not followed"},
		"307":             {answer{307, "Location: /", inspected}, "redirects are not followed"},
		"302 odd":         {answer{302, "Location: http://[Secret/", ""}, "redirects are not followed"},
		"304":             {answer{304, "", ""}, "answers 304"},
		"500 of poller":   {answer{500, text, inspected}, "answers 500"},
		"500 of submit":   {answer{500, text, submitted}, "answers 500"},
		"page":            {answer{200, "Content-Type: text/html", page}, "JSON object"},
		"empty":           {answer{200, text, ""}, "empty"},
		"whitespace":      {answer{200, text, " \n"}, "empty"},
		"204":             {answer{204, "", ""}, "empty"},
		"202":             {answer{202, "", ""}, "empty"},
		"null":            {answer{200, text, "null"}, "JSON object"},
		"array":           {answer{200, text, "[" + submitted + "]"}, "JSON object"},
		"string":          {answer{200, text, `"{\"mode\": \"inspect\"}"`}, "JSON object"},
		"two objects":     {answer{200, text, inspected + submitted}, "JSON object"},
		"cut JSON":        {answer{200, text, inspected[:40]}, "JSON object"},
		"empty object":    {answer{200, text, "{}"}, "is not the"},
		"forbidden":       {answer{200, text, forbidden}, "is not the"},
		"object store":    {answer{200, text, `{"Code": "AccessDenied", "Message": "Secret", "RequestId": "1"}`}, "is not the"},
		"error of an API": {answer{200, text, `{"error": {"code": "Secret"}, "job_id": null, "mode": "scheduled"}`}, "is not the"},
		"other types":     {answer{200, text, `{"mode": 5, "job_id": true}`}, "JSON object"},
		"migrate":         {answer{200, text, `{"from": 2, "to": 2}`}, "is not the"},
		"truncated":       {answer{200, "Content-Length: 500", inspected}, "before its answer was complete"},
		"too large":       {answer{200, text, large}, "more than a function can"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			address := c.serve(t)
			for _, what := range []string{"status", "submit"} {
				line := invocation(t, what, address)
				if !strings.Contains(line, c.want) || strings.Contains(line, "Secret") || strings.Contains(line, unknown) != (what == "submit") {
					t.Errorf("%s: %q, want %q", what, line, c.want)
				}
			}
		})
	}
}

func TestPost_FunctionErrors(t *testing.T) {
	t.Parallel()
	const message = `"errorMessage": "database: no\u001b[2J route"`
	for name, c := range map[string]struct {
		answer
		want, submit string // of both; of submit
	}{
		"error":     {answer{200, "", `{` + message + `, "errorType": "errorString"}`}, "the function failed: database: no [2J route", "route\n"},
		"no type":   {answer{200, "", `{` + message + `}`}, "the function failed: database: no [2J route", "route\n"},
		"panic":     {answer{502, "", `{` + message + `, "errorType": "string", "stackTrace": []}`}, "the function failed: database", unknown},
		"exit":      {answer{502, "", `{` + message + `, "errorType": "Runtime.ExitError"}`}, "the function failed: database", unknown},
		"timed out": {answer{200, "", "Task timed out after 60.00 seconds"}, "the function failed: Task timed out after 60.00 seconds", unknown},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			address := c.serve(t)
			for _, what := range []string{"status", "submit"} {
				if line := invocation(t, what, address); !strings.Contains(line, c.want) || what == "submit" && !strings.Contains(line, c.submit) {
					t.Errorf("%s: %q, want %q", what, line, c.want)
				}
			}
		})
	}
}

func TestPost_Accepted(t *testing.T) {
	t.Parallel()
	for what, body := range map[string]string{"status": inspected, "submit": submitted} {
		address := answer{200, "", body}.serve(t)
		// A proxy is not asked for this machine's own addresses.
		if line := invocation(t, what, " "+address+"/\n", "HTTP_PROXY=http://127.0.0.1:1", "http_proxy=http://127.0.0.1:1"); line != "" {
			t.Errorf("%s: %s", what, line)
		}
	}
}

// Each line says what is wrong with the address, and the cure.
func TestPost_Addresses(t *testing.T) {
	t.Parallel()
	tls := httptest.NewUnstartedServer(nil)
	tls.Config.ErrorLog = log.New(io.Discard, "", 0)
	tls.StartTLS()
	t.Cleanup(tls.Close)
	for name, c := range map[string]struct {
		address string
		want    string
	}{
		"no scheme":      {"127.0.0.1:9001", "http://"},
		"host alone":     {"localhost:9001", "does not begin with http:// or https://"},
		"other scheme":   {"ftp://127.0.0.1:9001", "does not begin with http:// or https://"},
		"one slash":      {"http:/127.0.0.1:9001", "does not begin with http:// or https://"},
		"whitespace":     {" ", "does not begin with http:// or https://"},
		"no host":        {"http://:9001", "host"},
		"the example":    {"http://127.0.0.1:PORT", "host and port"},
		"port":           {"http://127.0.0.1:99999", "no valid port"},
		"stopped":        {"http://127.0.0.1:1", "was the stack stopped?"},
		"does not exist": {"http://poller.invalid:9001", "does not resolve"},
		"http of https":  {strings.Replace(answer{200, "", inspected}.serve(t), "http:", "https:", 1), "does not speak TLS"},
		"certificate":    {tls.URL, "cannot be asked: tls: failed to verify certificate: x509"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for _, what := range []string{"status", "submit"} {
				line := invocation(t, what, c.address, "HTTP_PROXY=", "http_proxy=", "HTTPS_PROXY=", "https_proxy=")
				if !strings.Contains(line, c.want) || strings.Contains(line, unknown) {
					t.Errorf("%s: %q, want %q and nothing sent", what, line, c.want)
				}
			}
		})
	}
}

func TestPost_Proxy(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ proxy, want string }{
		"stopped": {"http://user:Secret@127.0.0.1:1", "through the proxy 127.0.0.1:1, which failed: unset HTTP_PROXY"},
		"refuses": {answer{403, "Content-Type: text/html", ""}.serve(t), "(through the proxy 127.0.0.1:"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			line := invocation(t, "status", "http://poller.invalid:9001", "HTTP_PROXY="+c.proxy, "http_proxy=", "NO_PROXY=", "no_proxy=")
			if !strings.Contains(line, c.want) || strings.Contains(line, "Secret") {
				t.Errorf("got %q, want %q", line, c.want)
			}
		})
	}
}
