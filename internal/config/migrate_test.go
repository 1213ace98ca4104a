package config_test

import (
	"strings"
	"testing"

	"sumepoller/internal/config"
)

func TestLoadMigrate_Invalid(t *testing.T) {
	t.Parallel()
	const database = "DATABASE_URL=postgres://127.0.0.1/jobs"
	for name, c := range map[string]struct {
		environ []string
		want    []string // beginning of each line, in any order
	}{
		"no roles":            {[]string{database}, nil},
		"IAM":                 {[]string{database, "MIGRATE_POLLER_ROLE=a_poller", "MIGRATE_SUBMIT_ROLE=a_submit", "MIGRATE_ROLE_AUTH=iam"}, nil},
		"secrets":             {[]string{database, "MIGRATE_POLLER_ROLE=a_poller", "MIGRATE_SUBMIT_ROLE=a_submit", "MIGRATE_ROLE_AUTH=secret", "MIGRATE_POLLER_SECRET_ID=p", "MIGRATE_SUBMIT_SECRET_ID=s"}, nil},
		"nothing":             {nil, []string{"DATABASE_URL: "}},
		"one role, no auth":   {[]string{database, "MIGRATE_POLLER_ROLE=a_poller"}, []string{"MIGRATE_SUBMIT_ROLE: not set", "MIGRATE_ROLE_AUTH: not set"}},
		"secrets missing":     {[]string{database, "MIGRATE_POLLER_ROLE=a", "MIGRATE_SUBMIT_ROLE=b", "MIGRATE_ROLE_AUTH=secret"}, []string{"MIGRATE_POLLER_SECRET_ID: not set", "MIGRATE_SUBMIT_SECRET_ID: not set"}},
		"IAM beside a secret": {[]string{database, "MIGRATE_POLLER_ROLE=a", "MIGRATE_SUBMIT_ROLE=b", "MIGRATE_ROLE_AUTH=iam", "MIGRATE_SUBMIT_SECRET_ID=s"}, []string{"MIGRATE_SUBMIT_SECRET_ID: is set beside"}},
		"one role for both":   {[]string{database, "MIGRATE_POLLER_ROLE=a", "MIGRATE_SUBMIT_ROLE=a", "MIGRATE_ROLE_AUTH=iam"}, []string{"MIGRATE_SUBMIT_ROLE: is the same"}},
		"invalid role names":  {[]string{database, "MIGRATE_POLLER_ROLE=pg_a", "MIGRATE_SUBMIT_ROLE=" + strings.Repeat("a", 64), "MIGRATE_ROLE_AUTH=iam"}, []string{"MIGRATE_POLLER_ROLE: begins with pg_", "MIGRATE_SUBMIT_ROLE: is too long"}},
		"unknown auth":        {[]string{database, "MIGRATE_POLLER_ROLE=a", "MIGRATE_SUBMIT_ROLE=b", "MIGRATE_ROLE_AUTH=trust"}, []string{"MIGRATE_ROLE_AUTH: \"trust\" is unknown"}},
		"plain http":          {[]string{database, "SUME_API_BASE_URL=http://sume.example"}, []string{"SUME_API_BASE_URL: is plain http"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, err := config.LoadMigrate(c.environ)
			var lines []string
			if err != nil {
				lines = strings.Split(err.Error(), "\n")
			}
			if len(lines) != len(c.want) {
				t.Fatalf("got %q, want %d lines", lines, len(c.want))
			}
			for _, want := range c.want {
				if !strings.Contains("\n"+err.Error(), "\n"+want) {
					t.Errorf("got %q, want a line that begins with %q", lines, want)
				}
			}
		})
	}
}
