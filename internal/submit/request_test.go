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
		"both fields":                     {`{"idempotency_key": "order-42", "video": {"prompt": "a"}}`, "order-42", `{"prompt": "a"}`, false},
		"body kept verbatim":              {`{"video":{ "b" : 1.10,"a":2, "a":"é\u00e9" } ,"idempotency_key":"k"}`, "k", `{ "b" : 1.10,"a":2, "a":"é\u00e9" }`, false},
		"resend":                          {`{"idempotency_key": "k", "video": {"p": 1}, "resend": true}`, "k", `{"p": 1}`, true},
		"no resend":                       {`{"idempotency_key": "k", "video": {"p": 1}, "resend": false}`, "k", `{"p": 1}`, false},
		"key with a space inside":         {`{"idempotency_key": "order 42/~", "video": {"p": 1}}`, "order 42/~", `{"p": 1}`, false},
		"key of 255 bytes":                {`{"idempotency_key": "` + strings.Repeat("k", 255) + `", "video": {"p": 1}}`, strings.Repeat("k", 255), `{"p": 1}`, false},
		"empty name and null in the body": {`{"idempotency_key": "k", "video": {"": null}}`, "k", `{"": null}`, false},
		"half a surrogate in the body":    {`{"idempotency_key": "k", "video": {"p": "\ud800"}}`, "k", `{"p": "\ud800"}`, false},
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

// invalid maps an error to a payload that has it and to what the line says.
var invalid = map[string]struct{ payload, says string }{
	"empty":                      {``, "empty; want JSON"},
	"null":                       {`null`, "want an object, got null"},
	"array":                      {`[]`, "want an object, got an array"},
	"string":                     {`"order-42"`, "want an object, got a string"},
	"two values":                 {`{"idempotency_key": "k", "video": {"p": 1}} {}`, "not JSON: "},
	"byte-order mark":            {"\ufeff{}", "not JSON: "},
	"cut off":                    {`{"idempotency_key": "k"`, "cut off"},
	"not UTF-8":                  {"{\"idempotency_key\": \"k\", \"video\": {\"p\": \"\xff\"}}", "not UTF-8"},
	"empty object":               {`{}`, "idempotency_key: missing"},
	"no key":                     {`{"video": {"p": 1}}`, "idempotency_key: missing"},
	"key is null":                {`{"idempotency_key": null, "video": {"p": 1}}`, "idempotency_key: want a string, got null"},
	"key is a number":            {`{"idempotency_key": 42, "video": {"p": 1}}`, "idempotency_key: want a string, got a number"},
	"key is empty":               {`{"idempotency_key": "", "video": {"p": 1}}`, "idempotency_key: want a string, got an empty one"},
	"key is whitespace":          {`{"idempotency_key": " \t ", "video": {"p": 1}}`, "idempotency_key: want printable ASCII"},
	"key is a space":             {`{"idempotency_key": " ", "video": {"p": 1}}`, "idempotency_key: begins or ends"},
	"key of 256 bytes":           {`{"idempotency_key": "` + strings.Repeat("k", 256) + `", "video": {"p": 1}}`, "idempotency_key: 256 bytes"},
	"key with a line break":      {`{"idempotency_key": "a\r\nX-Other: b", "video": {"p": 1}}`, "idempotency_key: want printable ASCII"},
	"key with DEL":               {`{"idempotency_key": "a\u007f", "video": {"p": 1}}`, "idempotency_key: want printable ASCII"},
	"key beyond ASCII":           {`{"idempotency_key": "bestellung-ä", "video": {"p": 1}}`, "idempotency_key: want printable ASCII"},
	"key that ends with a space": {`{"idempotency_key": "k ", "video": {"p": 1}}`, "idempotency_key: begins or ends"},
	"no body":                    {`{"idempotency_key": "k"}`, "video: missing"},
	"body is null":               {`{"idempotency_key": "k", "video": null}`, "video: want an object"},
	"body is an array":           {`{"idempotency_key": "k", "video": [{"p": 1}]}`, "video: want an object"},
	"body is a string":           {`{"idempotency_key": "k", "video": "{}"}`, "video: want an object"},
	"body is an empty object":    {`{"idempotency_key": "k", "video": { }}`, "video: empty"},
	"error inside the body":      {`{"idempotency_key": "k", "video": {"prompt": {"secret": x}}}`, "payload: video: not JSON: "},
	"unknown field":              {`{"idempotency_key": "k", "video": {"p": 1}, "dry_run": true}`, "dry_run: unknown field; want idempotency_key, video or resend"},
	"another spelling":           {`{"Idempotency_Key": "k", "video": {"p": 1}}`, "Idempotency_Key: unknown field; want idempotency_key"},
	"body in another spelling":   {`{"idempotency_key": "k", "video": {"p": 1}, "Video": {"p": 2}}`, "Video: unknown field; want idempotency_key, video"},
	"field given twice":          {`{"idempotency_key": "k", "video": {"p": 1}, "video": {"p": 2}}`, "video: given twice"},
	"resend is null":             {`{"idempotency_key": "k", "video": {"p": 1}, "resend": null}`, "resend: want a boolean, got null"},
	"resend is a string":         {`{"idempotency_key": "k", "video": {"p": 1}, "resend": "true"}`, "resend: want a boolean, got a string"},
}

func TestParse_Invalid(t *testing.T) {
	t.Parallel()
	for name, tt := range invalid {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, err := submit.Parse([]byte(tt.payload))
			if !errors.Is(err, submit.ErrPayload) {
				t.Fatalf("got %v, want an invalid order", err)
			}
			if text := err.Error(); !strings.HasPrefix(text, "payload: ") || !strings.Contains(text, tt.says) || strings.Contains(text, "\n") {
				t.Errorf("got %q, want one line that says %q", text, tt.says)
			}
			if strings.Contains(err.Error(), "secret") {
				t.Errorf("got %q, which quotes the body", err)
			}
		})
	}
}

func FuzzParse(f *testing.F) {
	for _, tt := range invalid {
		f.Add([]byte(tt.payload))
	}
	f.Add([]byte(`{"idempotency_key": "k", "video": {"a": [1, "\ud800", {"b": -0.10e+5}]}, "resend": true}`))
	f.Fuzz(func(t *testing.T, payload []byte) {
		r, err := submit.Parse(payload)
		if err != nil {
			return
		}
		if r.Key == "" || len(r.Video) < len(`{"":0}`) {
			t.Errorf("accepted %q with key %q and body %q", payload, r.Key, r.Video)
		}
		if !submit.Equal(r.Video, append([]byte(" "), r.Video...)) {
			t.Errorf("body %q differs from itself after a space", r.Video)
		}
	})
}
