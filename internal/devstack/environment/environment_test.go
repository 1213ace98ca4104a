package environment_test

import (
	"os"
	"slices"
	"strings"
	"testing"

	"sumepoller/internal/devstack/environment"
)

func TestIsolate(t *testing.T) {
	for name, value := range map[string]string{
		"PGSSLMODE": "require", "PGSERVICE": "nonexistent", "PGOPTIONS": "-c nonsense=1", "PGTZ": "",
		"AWS_PROFILE": "nonexistent", "AWS_ENDPOINT_URL": "http://192.0.2.1", "AWS_CONFIG_FILE": "/nonexistent",
		"DATABASE_URL": "postgres://nobody@192.0.2.1/none", "SUME_API_BASE_URL": "x", "POLL_LEASE": "x", "MIGRATE_ROLE_AUTH": "x",
		"PG_BIN": "/bin", "DEV_DATABASE_URL": "host=/tmp", "JOBS": "5", "LC_ALL": "nowhere", "HTTP_PROXY": "http://192.0.2.1",
	} {
		t.Setenv(name, value)
	}
	environment.Isolate()
	var got []string
	for _, variable := range os.Environ() {
		for _, of := range []string{"PG", "AWS_", "DATABASE_", "SUME_", "POLL_", "MIGRATE_", "DEV_", "JOBS", "LC_", "HTTP_PROXY"} {
			if strings.HasPrefix(variable, of) {
				got = append(got, variable)
			}
		}
	}
	slices.Sort(got)
	want := []string{
		"AWS_CONFIG_FILE=/dev/null", "AWS_SHARED_CREDENTIALS_FILE=/dev/null",
		"DEV_DATABASE_URL=host=/tmp", "HTTP_PROXY=http://192.0.2.1", "JOBS=5", "LC_ALL=C", "PG_BIN=/bin",
	}
	if !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}
