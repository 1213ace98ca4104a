package submit_test

import (
	"errors"
	"strings"
	"testing"

	"sumepoller/internal/submit"
)

func TestParse(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		payload string
		key     string
		video   string
		resend  bool
	}{
		"both fields":                       {`{"idempotency_key": "order-42", "video": {"prompt": "a"}}`, "order-42", `{"prompt": "a"}`, false},
		"the body to the letter":            {`{"video":{ "b" : 1.10,"a":2, "a":"é\u00e9" } ,"idempotency_key":"k"}`, "k", `{ "b" : 1.10,"a":2, "a":"é\u00e9" }`, false},
		"resend asked for":                  {`{"idempotency_key": "k", "video": {"p": 1}, "resend": true}`, "k", `{"p": 1}`, true},
		"resend not asked for":              {`{"idempotency_key": "k", "video": {"p": 1}, "resend": false}`, "k", `{"p": 1}`, false},
		"a key with a blank inside":         {`{"idempotency_key": "order 42/~", "video": {"p": 1}}`, "order 42/~", `{"p": 1}`, false},
		"a key as long as a header takes":   {`{"idempotency_key": "` + strings.Repeat("k", 255) + `", "video": {"p": 1}}`, strings.Repeat("k", 255), `{"p": 1}`, false},
		"a body field of any name or shape": {`{"idempotency_key": "k", "video": {"": null}}`, "k", `{"": null}`, false},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got, err := submit.Parse([]byte(tt.payload))
			if err != nil {
				t.Fatal(err)
			}
			if got.Key != tt.key || string(got.Video) != tt.video || got.Resend != tt.resend {
				t.Errorf("got %q, %s, %v", got.Key, got.Video, got.Resend)
			}
		})
	}
}

// refusals maps a fault to a payload that has it and to what the line says.
var refusals = map[string]struct{ payload, says string }{
	"nothing":                      {``, "not valid JSON"},
	"null":                         {`null`, "must be an object"},
	"a list":                       {`[]`, "must be an object"},
	"a string":                     {`"order-42"`, "must be an object"},
	"text behind the object":       {`{"idempotency_key": "k", "video": {"p": 1}} {}`, "not valid JSON"},
	"a byte-order mark":            {"\ufeff{}", "not valid JSON"},
	"bytes that are no UTF-8":      {"{\"idempotency_key\": \"k\", \"video\": {\"p\": \"\xff\"}}", "not valid UTF-8"},
	"an empty object":              {`{}`, "idempotency_key: missing"},
	"no key":                       {`{"video": {"p": 1}}`, "idempotency_key: missing"},
	"a null key":                   {`{"idempotency_key": null, "video": {"p": 1}}`, "idempotency_key: must be a string"},
	"a number as key":              {`{"idempotency_key": 42, "video": {"p": 1}}`, "idempotency_key: must be a string"},
	"an empty key":                 {`{"idempotency_key": "", "video": {"p": 1}}`, "idempotency_key: blank"},
	"a blank key":                  {`{"idempotency_key": " \t ", "video": {"p": 1}}`, "idempotency_key: blank"},
	"a key that is too long":       {`{"idempotency_key": "` + strings.Repeat("k", 256) + `", "video": {"p": 1}}`, "idempotency_key: 256 bytes"},
	"a key with a line break":      {`{"idempotency_key": "a\r\nX-Other: b", "video": {"p": 1}}`, "idempotency_key: only printable ASCII"},
	"a key beyond ASCII":           {`{"idempotency_key": "bestellung-ä", "video": {"p": 1}}`, "idempotency_key: only printable ASCII"},
	"a key that ends with a blank": {`{"idempotency_key": "k ", "video": {"p": 1}}`, "idempotency_key: begins or ends"},
	"no body":                      {`{"idempotency_key": "k"}`, "video: missing"},
	"a null body":                  {`{"idempotency_key": "k", "video": null}`, "video: must be an object"},
	"a list as body":               {`{"idempotency_key": "k", "video": [{"p": 1}]}`, "video: must be an object"},
	"a string as body":             {`{"idempotency_key": "k", "video": "{}"}`, "video: must be an object"},
	"an empty body":                {`{"idempotency_key": "k", "video": { }}`, "video: empty"},
	"an unknown field":             {`{"idempotency_key": "k", "video": {"p": 1}, "dry_run": true}`, `unknown field "dry_run"`},
	"another spelling":             {`{"Idempotency_Key": "k", "video": {"p": 1}}`, `unknown field "Idempotency_Key", spelled idempotency_key`},
	"a body in another spelling":   {`{"idempotency_key": "k", "video": {"p": 1}, "Video": {"p": 2}}`, `unknown field "Video", spelled video`},
	"a field twice":                {`{"idempotency_key": "k", "video": {"p": 1}, "video": {"p": 2}}`, "video: stands twice"},
	"a null resend":                {`{"idempotency_key": "k", "video": {"p": 1}, "resend": null}`, "resend: must be true or false"},
	"a text as resend":             {`{"idempotency_key": "k", "video": {"p": 1}, "resend": "true"}`, "resend: must be true or false"},
}

func TestParseRefuses(t *testing.T) {
	t.Parallel()
	for name, tt := range refusals {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, err := submit.Parse([]byte(tt.payload))
			if !errors.Is(err, submit.ErrPayload) {
				t.Fatalf("got %v, want a refusal", err)
			}
			if text := err.Error(); !strings.HasPrefix(text, "payload: ") || !strings.Contains(text, tt.says) || strings.Contains(text, "\n") {
				t.Errorf("got %q, want one line that says %q", text, tt.says)
			}
		})
	}
}

func FuzzParse(f *testing.F) {
	for _, tt := range refusals {
		f.Add([]byte(tt.payload))
	}
	f.Add([]byte(`{"idempotency_key": "k", "video": {"a": [1, "\ud800", {"b": -0.10e+5}]}, "resend": true}`))
	f.Fuzz(func(t *testing.T, payload []byte) {
		r, err := submit.Parse(payload)
		if err != nil {
			return
		}
		if r.Key == "" || len(r.Video) < len(`{"":0}`) {
			t.Errorf("took %q with key %q and body %q", payload, r.Key, r.Video)
		}
		if !submit.Equal(r.Video, append([]byte(" "), r.Video...)) {
			t.Errorf("body %q differs from itself behind a blank", r.Video)
		}
	})
}
