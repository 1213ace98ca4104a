package poller

import (
	"strconv"
	"strings"
)

func (f *ReadError) text() string {
	parts := []string{string(f.Class)}
	if f.HTTPStatus != 0 {
		parts = append(parts, strconv.Itoa(f.HTTPStatus))
	}
	if f.Reason != "" {
		parts = append(parts, f.Reason)
	}
	if f.RequestID != "" {
		parts = append(parts, "request_id="+f.RequestID)
	}
	return strings.Join(parts, " ")
}
