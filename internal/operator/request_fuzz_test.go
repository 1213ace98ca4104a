package operator_test

import (
	"encoding/json"
	"strings"
	"testing"

	"sumepoller/internal/operator"
)

// FuzzParseRequest holds what the table of a user leans on: no panic, a
// refusal of one line, and no accepted payload that would do something
// without saying what.
func FuzzParseRequest(f *testing.F) {
	for _, seed := range []string{
		``, `null`, `{}`, `[]`, `{"backfill": {"job_ids": ["job_1"], "limit": 3}}`, `{"backfill": {"states": ["failed"]}}`,
		`{"inspect": {"job_ids": ["a"], "limit": 20}}`, `{"stop": {"job_ids": ["\ud800"]}}`, `{"source": "a", "detail-type": "b"}`,
		`{"backfill": {"overdue": true, "created_after": "2026-11-01T00:00:00Z", "reads_per_minute": 1e3}}`,
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, payload []byte) {
		r, err := operator.ParseRequest(payload)
		if err != nil {
			field, fault, named := strings.Cut(err.Error(), ": ")
			if !named || field == "" || fault == "" || strings.ContainsAny(err.Error(), "\n\r\x00") {
				t.Errorf("refusal %q is not one line that names a field", err)
			}
			return
		}
		var ids []string
		switch r.Mode {
		case "":
			if len(payload) > 0 && !json.Valid(payload) && strings.TrimSpace(string(payload)) != "" {
				t.Errorf("%q was taken for the schedule's pass", payload)
			}
			return
		case operator.ModeBackfill:
			b := r.Backfill
			if len(b.JobIDs) == 0 && len(b.States) == 0 && !b.Overdue || b.Limit < 0 || b.Pace(120, 10000) <= 0 {
				t.Errorf("%q was taken as %+v", payload, b)
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
				t.Errorf("%q let %q through", payload, id)
			}
		}
	})
}
