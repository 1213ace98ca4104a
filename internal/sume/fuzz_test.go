package sume_test

import (
	"encoding/json"
	"net/http"
	"regexp"
	"testing"

	"sumepoller/internal/sume"
)

var wordForm = regexp.MustCompile(`^[a-z0-9_-]{0,64}$`)

func FuzzDecode(f *testing.F) {
	for _, seed := range []string{
		`{"terminal": false, "sume_status": "processing", "next_poll_after_seconds": 15}`,
		`{"data":{"job_id":"job_1","status":"COMPLETED","terminal":true,"job":{"id":"job_1","status":"completed"}},"request_id":"r"}`,
		`{"data":[],"status":" x "}`, `null`, `"x"`, `[`, `{"a":"\\","status":"\u0000"}`, `{"a":1,"b":[{}],"terminal":true}`,
		`{"next_poll_after_seconds":1e400,"terminal":false}`, `{"next_poll_after_seconds":"-1","status":"queued"}`, "\ufeff{}", `{"":"","status":"\ud800"}`,
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		d, err := sume.Decode(body, "job_1")
		if d.NextPoll < 0 || d.NextPoll > sume.MaxWait {
			t.Errorf("next poll %v out of bounds", d.NextPoll)
		}
		if err != nil {
			return
		}
		if !json.Valid(body) {
			t.Error("an answer that is not JSON was accepted")
		}
		if !wordForm.MatchString(d.Status) || d.Terminal && d.Status == "" {
			t.Errorf("terminal %t with status %q was accepted", d.Terminal, d.Status)
		}
		agreesWithMap(t, body, d)
	})
}

// agreesWithMap decodes the answer a second way: where every field stands once,
// as it does once a map was written as JSON, the result must be the same.
func agreesWithMap(t *testing.T, body []byte, want sume.Decoded) {
	var m map[string]json.RawMessage
	if err := json.Unmarshal(body, &m); err != nil {
		t.Fatalf("accepted what is no object: %v", err)
	}
	again, err := json.Marshal(m)
	if err != nil {
		t.Fatal(err)
	}
	got, err := sume.Decode(again, "job_1")
	if err != nil || got.Terminal != want.Terminal || got.Status != want.Status {
		t.Errorf("encoded again: got %+v, %v, want %+v", got, err, want)
	}
}

func FuzzRetryAfter(f *testing.F) {
	for _, seed := range []string{"120", "-5", "1.5", "120junk", "", "Mon, 02 Nov 2026 10:02:00 GMT", "99999999999999999999", "1793613630", "9000000001"} {
		f.Add(seed, date)
	}
	f.Fuzz(func(t *testing.T, value, now string) {
		h := http.Header{"Retry-After": {value}, "Ratelimit-Reset": {value}, "Date": {now}}
		if got := sume.RetryAfter(h); got < -1 || got > sume.MaxWait {
			t.Errorf("Retry-After %q: %v is out of bounds", value, got)
		}
		if got := sume.Reset(h); got < 0 || got > sume.MaxWait {
			t.Errorf("RateLimit-Reset %q: %v is out of bounds", value, got)
		}
	})
}
