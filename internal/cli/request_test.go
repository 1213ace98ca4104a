package cli_test

import (
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// recorder serves a function that keeps the payloads sent to it.
func recorder(t *testing.T, answer string) (address string, bodies chan string) {
	t.Helper()
	bodies = make(chan string, 10)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		bodies <- string(body)
		_, _ = w.Write([]byte(answer))
	}))
	t.Cleanup(server.Close)
	return server.URL, bodies
}

// file writes a file and returns its path.
func file(t *testing.T, content string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func TestRequest_Payload(t *testing.T) {
	t.Parallel()
	const backfill = " {\"backfill\" : {\"overdue\":true, \"states\":[\"<\"]}}\n"
	for name, c := range map[string]struct {
		kind, stdin string
		env         []string
		want        string
	}{
		"status":              {kind: "status", want: `{"inspect":{}}`},
		"jobs":                {kind: "status", env: []string{"JOB=a, b"}, want: `{"inspect":{"job_ids":["a","b"]}}`},
		"quotes":              {kind: "stop", env: []string{`JOB=job_"1`}, want: `{"stop":{"job_ids":["job_\"1"]}}`},
		"lines":               {kind: "stop", env: []string{"IDS=-"}, stdin: "a\r\n\n b \r\nc", want: `{"stop":{"job_ids":["a","b","c"]}}`},
		"CSV with a heading":  {kind: "backfill", env: []string{"IDS=-"}, stdin: "\ufeffjob_id,state\n\"a,1\",failed\nb,\n", want: `{"backfill":{"job_ids":["a,1","b"]}}`},
		"file and job":        {kind: "stop", env: []string{"JOB=a", "IDS=" + file(t, "job_\"1\nid\n")}, want: `{"stop":{"job_ids":["a","job_\"1","id"]}}`},
		"backfill file":       {kind: "backfill", env: []string{"FILE=" + file(t, backfill)}, want: backfill},
		"backfill from stdin": {kind: "backfill", env: []string{"FILE=-"}, stdin: backfill, want: backfill},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			mode := map[string]string{"status": "inspect"}[c.kind] + strings.TrimPrefix(c.kind, "status")
			address, bodies := recorder(t, `{"mode": "`+mode+`"}`)
			code, _, errs := run(t, append(c.env, "FUNCTION_URL="+address), c.stdin, c.kind)
			if code != 0 || len(bodies) != 1 {
				t.Fatalf("exit code %d, %d requests, error %q; want 0 and one request", code, len(bodies), errs)
			}
			if got := <-bodies; got != c.want {
				t.Errorf("sent %s, want %s", got, c.want)
			}
		})
	}
}

func TestRequest_Invalid(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		kind string
		env  []string
		want string
	}{
		"no request":        {kind: "delete", want: "want status, backfill, stop or submit"},
		"no job":            {kind: "stop", want: "JOB="},
		"no file":           {kind: "backfill", want: "FILE="},
		"no order":          {kind: "submit", env: []string{"JOB=a"}, want: "FILE="},
		"other request":     {kind: "submit", env: []string{"FILE=package.json"}, want: "idempotency_key"},
		"no JSON":           {kind: "submit", env: []string{"FILE=Makefile"}, want: "Makefile: not a JSON object"},
		"not UTF-8":         {kind: "submit", env: []string{"FILE=" + file(t, "{\"a\": \"\xff\"}")}, want: "not UTF-8"},
		"no such file":      {kind: "stop", env: []string{"IDS=none.csv"}, want: "none.csv: no such file"},
		"no ids in it":      {kind: "status", env: []string{"IDS=" + file(t, "job_id\n\n")}, want: "no job id in it"},
		"ids not UTF-8":     {kind: "status", env: []string{"IDS=" + file(t, "\xff\n")}, want: "not UTF-8"},
		"empty id":          {kind: "status", env: []string{"JOB=a,,b"}, want: "JOB: an id is empty"},
		"file and ids":      {kind: "backfill", env: []string{"JOB=a", "FILE=x"}, want: "without JOB and IDS"},
		"format":            {kind: "status", env: []string{"FORMAT=xml"}, want: "want json"},
		"state of a stop":   {kind: "stop", env: []string{"JOB=a", "STATE=failed"}, want: "STATE is for make status"},
		"state without ids": {kind: "status", env: []string{"STATE=failed"}, want: "STATE needs JOB or IDS"},
		"too large":         {kind: "submit", env: []string{"FILE=" + file(t, `{"idempotency_key": "`+strings.Repeat("x", 6<<20)+`"}`)}, want: "Lambda takes at most"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			address, bodies := recorder(t, `{}`)
			code, out, errs := run(t, append(c.env, "FUNCTION_URL="+address), "", c.kind)
			if code != 2 || out != "" || !strings.Contains(errs, c.want) || strings.Count(errs, "\n") != 1 {
				t.Errorf("exit code %d, output %q, error %q; want 2 and one line with %q", code, out, errs, c.want)
			}
			if len(bodies) > 0 {
				t.Errorf("sent %s", <-bodies)
			}
		})
	}
}

func TestRequest_Format(t *testing.T) {
	t.Parallel()
	const answer = `{"mode": "inspect", "at": "2026-11-02T12:00:00Z", "later": 1, "jobs": [{"job_id": "a", "state": "failed"}, {"job_id": "b", "state": "pending"}]}`
	address, _ := recorder(t, answer)
	for name, c := range map[string]struct {
		env          []string
		want, absent string
	}{
		"table":         {nil, "\nb    pending", `"later"`},
		"JSON":          {[]string{"FORMAT=json"}, `"later": 1`, "JOB "},
		"state":         {[]string{"STATE=failed", "JOB=a,b"}, "\na    failed", "\nb "},
		"state as JSON": {[]string{"STATE=failed", "JOB=a,b", "FORMAT=json"}, `"job_id": "a"`, `"b"`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			code, out, errs := run(t, append(c.env, "FUNCTION_URL="+address), "", "status")
			if code != 0 || errs != "" || !strings.Contains(out, c.want) || strings.Contains(out, c.absent) {
				t.Errorf("exit code %d, error %q, output %s; want %q in it and not %q", code, errs, out, c.want, c.absent)
			}
		})
	}
}

// make must pass an id verbatim, whatever characters it has.
func TestMake_JobVerbatim(t *testing.T) {
	t.Parallel()
	const job = "JOB=it's `id` $(id) $x; \"b\""
	for _, c := range []struct{ name, variable, argument string }{
		{"argument", "OTHER=", job},
		{"environment", job, "OTHER="},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			address, bodies := recorder(t, `{"mode": "stop"}`)
			cmd := program(t, []string{"FUNCTION_URL=" + address, c.variable})
			cmd.Args = []string{"env", "make", "-s", "-o", "cli", "CLI=" + cmd.Path, "stop", c.argument}
			cmd.Path = "/usr/bin/env"
			if out, err := cmd.CombinedOutput(); err != nil {
				t.Fatalf("%v: %s", err, out)
			}
			var sent string
			select {
			case sent = <-bodies:
			default: // nothing was sent
			}
			if want := "{\"stop\":{\"job_ids\":[\"it's `id` $(id) $x; \\\"b\\\"\"]}}"; sent != want {
				t.Errorf("sent %s, want %s", sent, want)
			}
		})
	}
}
