package main

import (
	"path/filepath"
	"strings"
	"testing"
)

// The tests run in infra/, where the paths of the root directory find neither
// settings nor built functions.

func TestPrepare_NoSettings(t *testing.T) {
	t.Setenv("SETTINGS", "")
	_, err := prepare()
	if err == nil || strings.Contains(err.Error(), "\n") || !strings.HasPrefix(err.Error(), "infra/settings.json: no such file") {
		t.Errorf("got %v, want one line", err)
	}
}

func TestPrepare_NoFunctions(t *testing.T) {
	t.Setenv("SETTINGS", filepath.Join("examples", "existing.json"))
	_, err := prepare()
	if err == nil || strings.Count(err.Error(), "no such directory; run `make build`") != 3 {
		t.Errorf("got %v, want three lines", err)
	}
}
