package main

import (
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/jackc/pgx/v5/pgconn"

	"sumepoller/internal/config"
	"sumepoller/internal/secrets"
	"sumepoller/migrations"
)

var (
	migrated = fmt.Sprintf(`{"from":0,"to":%d}`, migrations.Latest)
	again    = fmt.Sprintf(`{"from":%d,"to":%[1]d}`, migrations.Latest)
)

// denied runs statements that a role has no right to run.
func (s *stack) denied(login string, statements ...string) {
	s.t.Helper()
	for _, statement := range statements {
		err := s.try(login, statement)
		var pgErr *pgconn.PgError
		if !errors.As(err, &pgErr) || pgErr.Code != "42501" {
			s.t.Errorf("%s: got error %v, want permission denied", statement, err)
		}
	}
}

func TestRoles_Rights(t *testing.T) {
	t.Parallel()
	s := newStack(t)
	s.mustInvoke(migrated)
	poller := s.url(s.superuser, s.poller, "first'pw")
	submit := s.url(s.superuser, s.submit, "second pw")

	s.exec(submit,
		`INSERT INTO video_submissions (idempotency_key, request) VALUES ('order-1', '{}') ON CONFLICT (idempotency_key) DO NOTHING`,
		`UPDATE video_submissions SET state = 'accepted', job_id = 'job_1' WHERE idempotency_key = 'order-1'`,
		`INSERT INTO video_jobs (job_id) VALUES ('job_1') ON CONFLICT (job_id) DO NOTHING`,
		`SELECT state FROM video_jobs`)
	s.exec(poller,
		`INSERT INTO video_jobs (job_id) VALUES ('job_2') ON CONFLICT (job_id) DO UPDATE SET state = 'pending'`,
		`UPDATE video_jobs SET leased_until = now() WHERE job_id = 'job_1'`,
		`SELECT FROM video_jobs FOR UPDATE SKIP LOCKED`,
		`INSERT INTO read_budget VALUES (current_date, 1) ON CONFLICT (day) DO UPDATE SET reads = read_budget.reads + 1`,
		`SELECT count(*) FROM video_submissions`,
		`NOTIFY video_jobs_finished, '{}'`)

	ddl := []string{
		`DROP TABLE video_jobs`, `ALTER TABLE video_jobs ADD COLUMN x text`, `TRUNCATE video_jobs`, `DROP INDEX video_jobs_due_idx`,
		`DELETE FROM video_jobs`, `DELETE FROM video_submissions`, `DELETE FROM read_budget`,
		`SELECT count(*) FROM video_jobs_schema`, `CREATE SCHEMA mine`,
		`CREATE ROLE friend`, `ALTER ROLE ` + s.admin + ` NOLOGIN`,
	}
	s.denied(poller, append(ddl, `UPDATE video_submissions SET state = 'accepted'`, `INSERT INTO video_submissions (idempotency_key, request) VALUES ('x', '{}')`)...)
	s.denied(submit, append(ddl, `UPDATE video_jobs SET state = 'completed'`, `SELECT count(*) FROM read_budget`, `UPDATE read_budget SET reads = 0`)...)
	if err := s.try(s.url(s.superuser, s.poller, "second pw"), `SELECT`); err == nil {
		t.Error("the poller logs in with another's password")
	}
}

func TestRoles_Timeouts(t *testing.T) {
	t.Parallel()
	s := newStack(t)
	s.mustInvoke(migrated)
	got := s.value(`SELECT string_agg(setting, ' ' ORDER BY setting) FROM pg_db_role_setting, unnest(setconfig) AS setting WHERE setrole = quote_ident($1)::regrole`, s.poller)
	if want := "idle_in_transaction_session_timeout=30s lock_timeout=10s statement_timeout=30s"; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	if got := s.value(`SELECT left(rolpassword, 19) FROM pg_authid WHERE rolname = $1`, s.poller); got != "SCRAM-SHA-256$4096:" {
		t.Errorf("the password is kept as %s", got)
	}
}

func TestRoles_Again(t *testing.T) {
	t.Parallel()
	s := newStack(t)
	s.mustInvoke(migrated)
	s.exec(s.adminLogin, `GRANT DELETE ON video_jobs TO "`+s.poller+`"`)
	s.vault["poller"] = secretOf(s.poller, "rotated")
	s.h.cache = secrets.NewCache(s.vault)
	s.mustInvoke(again)
	rotated := s.url(s.superuser, s.poller, "rotated")
	s.exec(rotated, `SELECT count(*) FROM video_jobs`)
	s.denied(rotated, `DELETE FROM video_jobs`)
	if err := s.try(s.url(s.superuser, s.poller, "first'pw"), `SELECT`); err == nil {
		t.Error("the old password still logs in")
	}
}

func TestRoles_Concurrent(t *testing.T) {
	t.Parallel()
	s := newStack(t)
	var all sync.WaitGroup
	for range 3 {
		all.Go(func() {
			if _, err := s.invoke(); err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
	s.exec(s.url(s.superuser, s.poller, "first'pw"), `SELECT count(*) FROM video_jobs`)
}

func TestRoles_SerialColumn(t *testing.T) {
	t.Parallel()
	s := newStack(t)
	s.exec(s.adminLogin, `CREATE TABLE video_jobs (id serial, job_id text PRIMARY KEY, state text, next_poll_at timestamptz)`)
	s.mustInvoke(migrated)
	s.exec(s.url(s.superuser, s.submit, "second pw"), `INSERT INTO video_jobs (job_id) VALUES ('job_1')`)
}

func TestRoles_OtherOwner(t *testing.T) {
	t.Parallel()
	s := newStack(t)
	app := s.database + "_app"
	s.exec(s.superuser, `CREATE ROLE `+app, `GRANT CREATE ON SCHEMA public TO `+app, `SET ROLE `+app,
		`CREATE TABLE video_jobs (job_id text PRIMARY KEY, state text, next_poll_at timestamptz)`)
	s.refuses("GRANT " + app + " TO " + s.admin)
	if got := s.value(`SELECT count(*)::text FROM pg_roles WHERE rolname = $1`, s.poller); got != "0" {
		t.Error("a role was made although nothing was migrated")
	}
	s.exec(s.superuser, `ALTER ROLE `+s.admin+` NOINHERIT`, `GRANT `+app+` TO `+s.admin, `GRANT CREATE ON SCHEMA public TO `+s.admin)
	s.mustInvoke(migrated)
	s.exec(s.url(s.superuser, s.poller, "first'pw"), `UPDATE video_jobs SET polls = 1`)
}

func TestRoles_IAM(t *testing.T) {
	t.Parallel()
	s := newStack(t)
	s.mustInvoke(migrated)
	s.h.cfg.Roles = config.Roles{Poller: s.poller, Submit: s.submit, RoleAuth: config.RoleAuthIAM}
	s.refuses("no role rds_iam", `set auth "secret"`)

	s.exec(s.superuser, `CREATE ROLE rds_iam`, `GRANT rds_iam TO `+s.admin+` WITH ADMIN OPTION`)
	pool, err := s.h.connect(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer pool.Close()
	roles, err := s.h.roles(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	members := func() string {
		return s.value(`SELECT count(*)::text FROM pg_auth_members WHERE roleid = 'rds_iam'::regrole AND member::regrole::text LIKE '%'||$1||'%'`, s.poller)
	}
	for range 2 {
		if err := makeRoles(t.Context(), pool, roles); err != nil {
			t.Fatal(err)
		}
		if got := members(); got != "1" {
			t.Errorf("memberships in rds_iam: got %s, want 1", got)
		}
	}
	// Back to passwords.
	s.h.cfg.Roles = config.Roles{Poller: s.poller, Submit: s.submit, RoleAuth: config.RoleAuthSecret, PollerSecretID: "poller", SubmitSecretID: "submit"}
	s.mustInvoke(again)
	if got := members(); got != "0" {
		t.Errorf("memberships in rds_iam: got %s, want 0", got)
	}
}

func TestRoles_Refused(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		change func(*stack)
		want   string
	}{
		"the administrator's own": {func(s *stack) {
			s.h.cfg.Roles.Poller, s.vault["poller"] = s.admin, secretOf(s.admin, "x")
		}, "it is the administrator's role"},
		"a secret of another role": {func(s *stack) { s.vault["submit"] = secretOf("someone", "x") }, "secret: submit: its username is not the role"},
		"a missing secret":         {func(s *stack) { delete(s.vault, "submit") }, "secret: submit: not found"},
		"letters beyond ASCII":     {func(s *stack) { s.vault["poller"] = secretOf(s.poller, "pässwort") }, "secret poller: its password has characters outside printable ASCII"},
		"no right to make roles":   {func(s *stack) { s.exec(s.superuser, `ALTER ROLE `+s.admin+` NOCREATEROLE`) }, "make role " /* name */},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newStack(t)
			c.change(s)
			s.refuses(c.want)
			if got := s.value(`SELECT count(*)::text FROM pg_roles WHERE rolname = $1`, s.submit); got != "0" {
				t.Error("a role was left behind")
			}
		})
	}
}

func TestScramVerifier_Salt(t *testing.T) {
	t.Parallel()
	first, err := scramVerifier("x")
	second, _ := scramVerifier("x")
	if err != nil || first == second || !strings.HasPrefix(first, "SCRAM-SHA-256$4096:") {
		t.Errorf("got %s and %s, error %v", first, second, err)
	}
}
