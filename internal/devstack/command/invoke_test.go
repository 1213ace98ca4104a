package main_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// aws stands in for AWS's command line: it notes how it was called, and answers
// with what stands in the file answer, or fails where there is none.
const aws = `#!/bin/sh
dir=$(dirname "$0")
echo "$AWS_MAX_ATTEMPTS $*" >>"$dir/calls"
for last; do :; done
for word; do case $word in fileb://*) cat "${word#fileb://}" >"$dir/payload";; esac; done
[ -f "$dir/answer" ] || { echo 'An error occurred (ServiceException)' >&2; exit 254; }
cat "$dir/answer" >"$last"
`

func TestByHandThroughTheCommandLineOfAWS(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		when, answer, out string
		code              int
	}{
		{"the function answers", `{"mode": "stop"}`, "{\n  \"mode\": \"stop\"\n}\n", 0},
		{"the function fails", `{"errorMessage": "database: gone", "errorType": "x"}`, "make stop: the function failed: database: gone\n", 1},
		{"AWS fails", "", "make stop: aws lambda invoke shop-poller: exit status 254\nAn error occurred (ServiceException)\n", 1},
	} {
		t.Run(c.when, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			files := map[string]string{"aws": aws, "settings.json": `{"name": "shop"}`}
			if c.answer != "" {
				files["answer"] = c.answer
			}
			for name, text := range files {
				if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o700); err != nil {
					t.Fatal(err)
				}
			}
			env := []string{"FUNCTION_URL=", "SETTINGS=" + filepath.Join(dir, "settings.json"), "PATH=" + dir + ":" + os.Getenv("PATH")}
			out, err := program(t, env, "invoke", "stop", "job_1").CombinedOutput()
			if code := exitCode(t, err); code != c.code || string(out) != c.out {
				t.Errorf("exit code %d, output %q; want %d and %q", code, out, c.code, c.out)
			}
			// No read timeout, a single try.
			const want = "1 lambda invoke --function-name shop-poller --cli-read-timeout 0 "
			if calls := text(t, dir, "calls"); !strings.HasPrefix(calls, want) || strings.Count(calls, "\n") != 1 {
				t.Errorf("called %q, want once and %q", calls, want)
			}
			if payload := text(t, dir, "payload"); payload != `{"stop":{"job_ids":["job_1"]}}` {
				t.Errorf("payload %s", payload)
			}
		})
	}
}

func text(t *testing.T, dir, name string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(dir, name))
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}
