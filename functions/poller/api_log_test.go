package main_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"sumepoller/internal/config"
	"sumepoller/internal/sume/sumetest"
)

// Answers that are longer than they say leave a signed URL on a kept connection,
// which net/http quotes through the standard library's logger.
func TestLog_AnswerLongerThanDeclared(t *testing.T) {
	t.Parallel()
	s := newStage(t)
	server, err := sumetest.Listen(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		answer := httptest.NewRecorder()
		s.api.ServeHTTP(answer, r)
		conn, _, err := http.NewResponseController(w).Hijack()
		if err != nil {
			t.Error(err)
			return
		}
		defer func() { _ = conn.Close() }()
		_, _ = fmt.Fprintf(conn, "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%s%s",
			answer.Body.Len(), answer.Body, sumetest.SignedURL)
		_, _ = conn.Read(make([]byte, 1)) // until the client leaves
	}))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(server.Close)
	s.due(t, sumetest.Plan{}, ids("job", 20)...)
	b := s.sandbox(t, config.APIBaseURL+"="+server.URL, "POLL_BUDGET=5s")
	for range 5 { // a read that is sent on such a connection fails
		b.tick(t)
		if s.number(t, completed) == 20 {
			break
		}
		s.pass(t, time.Minute)
	}
	s.ended(t, map[string]int{"completed": 20})
	for _, word := range []string{"Unsolicited", "://", "X-"} {
		if strings.Contains(b.Log(), word) {
			t.Errorf("%q is in the log:\n%s", word, excerpt(b.Log(), word))
		}
	}
}
