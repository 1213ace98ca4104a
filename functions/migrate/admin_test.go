package main

import (
	"os"
	"strings"
	"testing"

	"sumepoller/internal/config"
	"sumepoller/internal/devstack/server"
)

// alone gives the test a new server. The test must not be parallel, so that no other
// test uses that server.
func alone(t *testing.T) *stack {
	t.Helper()
	mine, err := server.Start(t.Context(), server.Options{})
	if err != nil {
		t.Fatal(err)
	}
	shared := own
	own = mine
	t.Cleanup(func() { own = shared; mine.Stop() })
	return newStack(t)
}

// Like RDS, this server refuses the password of a member of rds_iam. It also counts
// the creator of such a member as one.
func TestAdmin_KeepsLogin(t *testing.T) {
	s := alone(t)
	file := s.value(`SHOW hba_file`)
	rules, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(file, append([]byte("host all +rds_iam all reject\n"), rules...), 0o600); err != nil {
		t.Fatal(err)
	}
	s.mustInvoke(migrated) // with passwords
	s.exec(s.superuser, `CREATE ROLE rds_iam`, `GRANT "`+s.poller+`" TO `+s.admin+` WITH ADMIN OPTION`,
		`ALTER ROLE `+s.admin+` SUPERUSER`, // may grant rds_iam and is not a member
		`SELECT pg_reload_conf()`, `SELECT pg_sleep(0.2)`)
	s.h.cfg.Roles = config.Roles{Poller: s.poller, Submit: s.submit, RoleAuth: config.RoleAuthIAM}
	s.refuses("rds_iam was revoked", `auth "secret"`)
	s.exec(s.adminLogin, `SELECT count(*) FROM video_jobs`)
	if got := s.value(`SELECT coalesce(string_agg(member::regrole::text, ' '), '') FROM pg_auth_members WHERE roleid = 'rds_iam'::regrole`); strings.TrimSpace(got) != "" {
		t.Errorf("rds_iam is left to %s", got)
	}
}

// With the plain GRANT, RDS would refuse the administrator's password.
func TestAdmin_OwnerWithIAM(t *testing.T) {
	s := alone(t)
	s.exec(s.superuser, `CREATE ROLE rds_iam`, `CREATE ROLE app`, `GRANT rds_iam TO app`, `GRANT CREATE ON SCHEMA public TO app`, `SET ROLE app`,
		`CREATE TABLE video_jobs (job_id text PRIMARY KEY, state text, next_poll_at timestamptz)`)
	s.refuses("GRANT app TO "+s.admin+" WITH INHERIT FALSE", "run the SQL of make schema as app")
	if s.value(`SELECT (current_setting('server_version_num')::int >= 160000)::text`) == "true" {
		s.exec(s.superuser, `GRANT app TO `+s.admin+` WITH INHERIT FALSE`, `GRANT CREATE ON SCHEMA public TO `+s.admin)
		s.mustInvoke(migrated)
	}
}
