package main

import (
	"path/filepath"
	"strings"
	"testing"
)

// The tests run in infra/, where neither settings nor built functions lie at
// the paths that the root has.

func TestWithoutSettingsItEndsWithOneLine(t *testing.T) {
	t.Setenv("SETTINGS", "")
	_, err := prepare()
	if err == nil || strings.Contains(err.Error(), "\n") || !strings.HasPrefix(err.Error(), "infra/settings.json: no such file") {
		t.Errorf("got %v, want one line", err)
	}
}

func TestWithoutBuiltFunctionsItEndsWithALineForEach(t *testing.T) {
	t.Setenv("SETTINGS", filepath.Join("examples", "existing.json"))
	_, err := prepare()
	if err == nil || strings.Count(err.Error(), "no such folder; run `make build`") != 3 {
		t.Errorf("got %v, want three lines", err)
	}
}
