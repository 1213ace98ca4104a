package telemetry

import (
	"bytes"
	"context"
	"log"
	"log/slog"
	"os"
	"strings"
	"testing"
)

type broken struct{}

func (broken) Invoke(context.Context, []byte) ([]byte, error) { panic("boom") }

func TestPanics_Logged(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	defer func() {
		cause := recover()
		line := out.String()
		if cause != "boom" || strings.Count(line, "\n") != 1 || !strings.Contains(line, `"level":"ERROR"`) || !strings.Contains(line, "telemetry.broken.Invoke") {
			t.Errorf("panic %v, logged %q; want the same panic, and one line with the stack", cause, line)
		}
	}()
	_, _ = panics{broken{}, NewLogger(&out, slog.LevelError)}.Invoke(t.Context(), nil)
}

func TestSilence(t *testing.T) {
	defer log.SetOutput(os.Stderr)
	var out bytes.Buffer
	log.SetOutput(&out)
	silence()
	log.Print("Unsolicited response")
	if out.Len() > 0 {
		t.Errorf("got %q, want nothing", &out)
	}
}
