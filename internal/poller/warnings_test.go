package poller

import (
	"bytes"
	"log/slog"
	"strings"
	"testing"
	"time"
)

func TestWarnings(t *testing.T) {
	var log bytes.Buffer
	w := warnings{log: slog.New(slog.NewJSONHandler(&log, nil))}
	count := func(want int, what string) {
		t.Helper()
		if got := strings.Count(log.String(), "\n"); got != want {
			t.Errorf("%s: %d warnings, want %d", what, got, want)
		}
		log.Reset()
	}
	for range 2 {
		w.refused(t.Context(), WriteError{JobID: "job_1", Write: WriteSettle})
	}
	count(2, "rows")
	for range 2 {
		w.refused(t.Context(), WriteError{JobID: "job_1", Write: WriteAnnouncement})
	}
	count(1, "announcements")
	w.cached(t.Context(), time.Second, time.Second)
	count(0, "as old as the interval")
	for range 2 {
		w.cached(t.Context(), time.Second+1, time.Second)
	}
	count(1, "older than the interval")
}
