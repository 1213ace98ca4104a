package config_test

import (
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"sumepoller/internal/config"
)

func TestLoadSubmit_Defaults(t *testing.T) {
	t.Parallel()
	got, err := config.LoadSubmit([]string{"SUME_API_KEY_SECRET_ID=sume/key", "DATABASE_URL=postgres://localhost/jobs", "LOG_LEVEL=debug"})
	if err != nil {
		t.Fatal(err)
	}
	want := config.Submit{
		Sume: config.Sume{
			APIKeySecretID: "sume/key", API: config.API{BaseURL: "https://api.sume.com/v1"},
			AuthMode: "bearer", RequestTimeout: 15 * time.Second,
		},
		Database: config.Database{URL: "postgres://localhost/jobs", Port: 5432, MaxConns: 4},
		Log:      config.Log{LogLevel: slog.LevelDebug},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("configuration (-want +got):\n%s", diff)
	}
}

func TestLoadSubmit_AllErrorsAtOnce(t *testing.T) {
	t.Parallel()
	_, err := config.LoadSubmit([]string{"SUME_API_BASE_URL=http://sume.test", "SUME_REQUEST_TIMEOUT=soon", "LOG_LEVEL=loud", "POLL_BUDGET=not-read"})
	if err == nil {
		t.Fatal("no error")
	}
	lines := strings.Split(err.Error(), "\n")
	for _, name := range []string{config.APIKeySecretID, config.APIBaseURL, config.RequestTimeout, config.DatabaseURL, config.LogLevel} {
		if !strings.Contains(err.Error(), name+": ") {
			t.Errorf("no line names %s: %q", name, lines)
		}
	}
	if len(lines) != 5 {
		t.Errorf("got %d lines, want 5: %q", len(lines), lines)
	}
}
