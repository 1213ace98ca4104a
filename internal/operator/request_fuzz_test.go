package operator_test

import (
	"encoding/json"
	"strings"
	"testing"

	"sumepoller/internal/operator"
)

// FuzzParseRequest checks that no payload panics, that an error is one line that
// begins with a field, and that an accepted request selects something valid.
func FuzzParseRequest(f *testing.F) {
	for _, seed := range []string{
		``, "\fnull", `null`, `{}`, `[]`, `{"backfill": {"job_ids": ["job_1"], "limit": 3}}`, `{"backfill": {"states": ["failed"]}}`,
		`{"inspect": {"job_ids": ["a"], "limit": 20}}`, `{"stop": {"job_ids": ["\ud800"]}}`, `{"source": "a", "detail-type": "b"}`,
		`{"backfill": {"overdue": true, "created_after": "2026-11-01T00:00:00Z", "reads_per_minute": 1e3}}`,
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, payload []byte) {
		r, err := operator.ParseRequest(payload)
		if err != nil {
			field, problem, named := strings.Cut(err.Error(), ": ")
			if !named || field == "" || problem == "" || strings.ContainsAny(err.Error(), "\n\r\x00") {
				t.Errorf("error %q is not one line that begins with a field", err)
			}
			return
		}
		var ids []string
		switch r.Mode {
		case "":
			if len(payload) > 0 && !json.Valid(payload) && strings.TrimSpace(string(payload)) != "" {
				t.Errorf("%q was parsed as a scheduled run", payload)
			}
			return
		case operator.ModeBackfill:
			b := r.Backfill
			if len(b.JobIDs) == 0 && len(b.States) == 0 && !b.Overdue || b.Limit < 0 || b.Pace(120, 10000) <= 0 {
				t.Errorf("%q was parsed as %+v", payload, b)
			}
			ids = append(b.JobIDs, b.States...)
		case operator.ModeInspect:
			ids = r.Inspect.JobIDs
		case operator.ModeStop:
			ids = r.Stop.JobIDs
		}
		for _, id := range ids {
			if strings.TrimSpace(id) == "" || id == "." || id == ".." || id == "pending" && r.Mode == operator.ModeBackfill && len(r.Backfill.JobIDs) == 0 ||
				len(id) > 512 || strings.ContainsRune(id, 0) {
				t.Errorf("%q: accepted %q", payload, id)
			}
		}
	})
}
