package main

import (
	"net/url"
	"strconv"
	"strings"
	"testing"
	"time"

	"sumepoller/internal/config"
	"sumepoller/internal/telemetry"
)

func TestInvoke_NoRoles(t *testing.T) {
	t.Parallel()
	s := newStack(t)
	s.h.cfg.Roles = config.Roles{}
	s.h.cfg.BaseURL = "http://127.0.0.1:1/v1"
	s.mustInvoke(migrated)
	for _, payload := range []string{``, `null`, `{}`, `{"any": ["thing"]}`, `no JSON`} {
		if got, err := s.h.Invoke(t.Context(), []byte(payload)); err != nil || string(got) != again {
			t.Errorf("payload %q: got %s, error %v", payload, got, err)
		}
	}
	if got := s.value(`SELECT count(*)::text FROM pg_roles WHERE rolname = $1`, s.poller); got != "0" {
		t.Error("a role was made")
	}
}

func TestInvoke_AdminSecret(t *testing.T) {
	t.Parallel()
	s := newStack(t)
	u, err := url.Parse(s.adminLogin)
	if err != nil {
		t.Fatal(err)
	}
	port, err := strconv.Atoi(u.Port())
	if err != nil {
		t.Fatal(err)
	}
	s.vault["admin"] = secretOf(s.admin, adminPassword)
	s.h.cfg.Database = config.Database{SecretID: "admin", Host: u.Hostname(), Port: port, Name: s.database, MaxConns: 1}
	s.vault["astray"] = strings.TrimSuffix(s.vault["admin"], "}") + `, "dbname": "postgres"}`
	s.h.cfg.Database.SecretID = "astray"
	s.refuses(`secret astray names the database "postgres"`, s.database)
	s.h.cfg.Database.SecretID = "admin"
	s.mustInvoke(migrated)
	s.exec(s.url(s.superuser, s.poller, "first'pw"), `SELECT count(*) FROM video_jobs`)
}

func TestConnect_Unreachable(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		url  func(*url.URL)
		want []string
	}{
		"a name that does not resolve": {func(u *url.URL) { u.Host = "db.invalid:5432" }, []string{"the name db.invalid does not resolve", "enableDnsSupport"}},
		"a port where nobody listens":  {func(u *url.URL) { u.Host = "127.0.0.1:1" }, []string{"port 1 of 127.0.0.1 does not answer", "security group"}},
		"a password that is wrong":     {func(u *url.URL) { u.User = url.UserPassword(u.User.Username(), "wr0ng") }, []string{"connect to the database", "28P01"}},
		"a database that is missing":   {func(u *url.URL) { u.Path = "/elsewhere" }, []string{"connect to the database", "3D000"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newStack(t)
			u, err := url.Parse(s.adminLogin)
			if err != nil {
				t.Fatal(err)
			}
			c.url(u)
			s.h.cfg.Database.URL = u.String()
			if name == "a port where nobody listens" { // a database that is starting refuses connections too
				s.within = 5 * time.Second
			}
			s.refuses(c.want...)
		})
	}
}

func TestInvoke_NeverDue(t *testing.T) {
	t.Parallel()
	s := newStack(t)
	var log strings.Builder
	s.h.log = telemetry.NewLogger(&log, 0)
	s.exec(s.adminLogin, `CREATE TABLE video_jobs (job_id text PRIMARY KEY, state text, next_poll_at timestamptz)`,
		`INSERT INTO video_jobs VALUES ('job_1', 'pending', NULL), ('job_2', 'pending', now()), ('job_3', 'failed', NULL)`)
	s.mustInvoke(migrated)
	if got := log.String(); !strings.Contains(got, `"rows":1`) {
		t.Errorf("log: got %s, want a warning of 1 row", got)
	}
}

func TestAccess_HiddenRows(t *testing.T) {
	t.Parallel()
	s := newStack(t)
	s.exec(s.adminLogin, `CREATE TABLE video_jobs (job_id text PRIMARY KEY, state text, next_poll_at timestamptz)`,
		`ALTER TABLE video_jobs ENABLE ROW LEVEL SECURITY`)
	_, err := s.invoke()
	want := `CREATE POLICY "` + s.poller + `" ON video_jobs TO "` + s.poller + `"`
	if err == nil || !strings.Contains(err.Error(), want) {
		t.Errorf("got %v, want %q", err, want)
	}
	s.exec(s.adminLogin, `CREATE POLICY everyone ON video_jobs USING (true)`)
	s.mustInvoke(again)
}

func TestInvoke_OtherSchema(t *testing.T) {
	t.Parallel()
	s := newStack(t)
	s.exec(s.adminLogin, `CREATE SCHEMA "video jobs"`, `ALTER ROLE `+s.admin+` SET search_path = "video jobs"`)
	s.mustInvoke(migrated)
	s.exec(s.url(s.superuser, s.poller, "first'pw"), `SELECT count(*) FROM video_jobs`)
}

func TestCheck_Unreachable(t *testing.T) {
	t.Parallel()
	s := newStack(t)
	s.h.cfg.BaseURL = "http://127.0.0.1:1/v1"
	s.refuses("the Sume API at 127.0.0.1:1 does not answer", "NAT gateway")
	s.exec(s.superuser, `ALTER ROLE "`+s.submit+`" CONNECTION LIMIT 0`)
	_, err := s.invoke()
	if err == nil {
		t.Fatal("got no error, want two lines")
	}
	lines := strings.Split(err.Error(), "\n")
	if len(lines) != 2 || !strings.HasPrefix(lines[0], "log in as role "+s.submit+": ") || !strings.HasPrefix(lines[1], "the Sume API at ") {
		t.Errorf("got %q, want a line for the login and one for the API", lines)
	}
}
