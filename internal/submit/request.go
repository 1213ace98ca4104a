package submit

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"strings"

	"sumepoller/internal/strictjson"
)

// Request is one order.
type Request struct {
	Key    string         `json:"idempotency_key"` // valid in an HTTP header
	Video  strictjson.Raw `json:"video"`           // the body of the post, verbatim: a JSON object with at least one field
	Resend bool           `json:"resend"`          // post again although the intent is too old, or was rejected for good
}

// Parse reads an order. Any error wraps ErrPayload and is one line that names
// the field.
func Parse(payload []byte) (Request, error) {
	var r Request
	err := strictjson.Unmarshal(payload, &r)
	if err == nil {
		err = cmp.Or(checkKey(r.Key), checkVideo(r.Video))
	}
	if err != nil {
		return Request{}, fmt.Errorf("%w: %w", ErrPayload, err)
	}
	return r, nil
}

func checkKey(key string) error {
	const longest = 255 // bytes
	notPrintable := func(r rune) bool { return r < ' ' || r > '~' }
	if key == "" {
		return errors.New("idempotency_key: missing")
	}
	if len(key) > longest {
		return fmt.Errorf("idempotency_key: %d bytes long; at most %d", len(key), longest)
	}
	if strings.ContainsFunc(key, notPrintable) {
		return errors.New("idempotency_key: want printable ASCII only, for the HTTP header")
	}
	if key != strings.TrimSpace(key) {
		return errors.New("idempotency_key: begins or ends with a space, which an HTTP header would lose")
	}
	return nil
}

func checkVideo(body []byte) error {
	if body == nil {
		return errors.New("video: missing")
	}
	if body[0] != '{' {
		return errors.New("video: want an object, the body of POST /v1/videos")
	}
	if len(bytes.TrimSpace(bytes.Trim(body, "{}"))) == 0 {
		return errors.New("video: empty")
	}
	return nil
}
