package main_test

import (
	"fmt"
	"net/url"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"sumepoller/internal/config"
	"sumepoller/internal/devstack/server"
	"sumepoller/internal/poller"
	"sumepoller/internal/sume/sumetest"
	"sumepoller/migrations"
)

// login is a role of a server that asks for passwords.
type login struct {
	*stage
	at   *url.URL
	user string
}

// newLogin starts another server: that of the other tests asks for no password.
func newLogin(t *testing.T) *login {
	t.Helper()
	started, err := server.Start(t.Context(), server.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(started.Stop)
	cfg, err := pgxpool.ParseConfig(started.URL())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := migrations.Up(t.Context(), cfg); err != nil {
		t.Fatal(err)
	}
	l := &login{stage: stageOn(t, started.URL()), user: "poller"}
	if l.at, err = url.Parse(started.URL()); err != nil {
		t.Fatal(err)
	}
	l.exec(t, `CREATE ROLE poller LOGIN`)
	for _, grant := range migrations.PollerRights.Statements("poller") {
		l.exec(t, grant)
	}
	return l
}

// rotate sets the role's password.
func (l *login) rotate(t *testing.T, password string) {
	t.Helper()
	l.exec(t, fmt.Sprintf(`ALTER ROLE poller PASSWORD '%s'`, password))
}

// store writes a password into the secret, in the form that RDS uses.
func (l *login) store(password string) {
	port, _ := strconv.Atoi(l.at.Port())
	l.vault.Set("db", fmt.Sprintf(`{"username": "poller", "password": %q, "host": %q, "port": %d, "dbname": "postgres"}`,
		password, l.at.Hostname(), port), false)
}

// The database's password is rotated, and the secret is updated later. The run
// fetches the secret once more; if it is still the old one, the run fails and
// changes no row. Passwords with characters that are special in URLs work.
func TestSecret_RotatedPassword(t *testing.T) {
	t.Parallel()
	l := newLogin(t)
	passwords := []string{`one#%?/:@[ ]x`, `two#%?/:@[ ]x`, `three#%?/:@[ ]x`}
	l.rotate(t, passwords[0])
	l.store(passwords[0])
	b := l.sandbox(t, config.DatabaseURL+"=", config.DatabaseSecretID+"=db")
	b.secrets = append(b.secrets, passwords...)
	l.due(t, sumetest.Plan{}, "job_1")
	if got := b.tick(t); got.Finished["completed"] != 1 {
		t.Errorf("at first: %+v", got)
	}
	// Rotated while the old password is cached and still in the secret.
	l.rotate(t, passwords[1])
	l.due(t, sumetest.Plan{}, ids("late", 5)...)
	if line, sum := b.fails(t, poller.KindDatabase); !strings.Contains(line, "28P01") || sum.Claimed > 0 {
		t.Errorf("%s, summary %+v", line, sum)
	}
	l.zero(t, charged)
	l.zero(t, held)
	l.store(passwords[1])
	if got := b.tick(t); got.Finished["completed"] != 5 {
		t.Errorf("after the secret was updated: %+v", got)
	}
	// Password and secret are rotated between two invocations.
	calls := l.vault.Calls()
	l.rotate(t, passwords[2])
	l.store(passwords[2])
	l.due(t, sumetest.Plan{}, "job_2")
	if got := b.tick(t); got.Finished["completed"] != 1 {
		t.Errorf("after the second rotation: %+v", got)
	}
	if n := l.vault.Calls() - calls; n != 1 {
		t.Errorf("%d secrets fetched, want only the refused one", n)
	}
	l.ended(t, map[string]int{"completed": 7})

	// A password in a connection string is not rotated: the error says so,
	// without the password.
	u := *l.at
	u.User = url.UserPassword(l.user, passwords[0])
	fixed := l.sandbox(t, config.DatabaseURL+"="+u.String())
	fixed.secrets = append(fixed.secrets, passwords...)
	if line, _ := fixed.fails(t, poller.KindDatabase); !strings.Contains(line, "28P01") {
		t.Errorf("error %s", line)
	}
}

func TestSecret_InNoOutput(t *testing.T) {
	t.Parallel()
	s := newStage(t)
	s.due(t, sumetest.Plan{}, ids("job", 5)...)
	b := s.sandbox(t, "POLL_BUDGET=5s")
	echo := `{"error": {"code": "` + plantedKey + `", "message": "Bearer ` + plantedKey + ` at ` + sumetest.SignedURL + `"}, "url": "` + sumetest.SignedURL + `"}`
	for i, fault := range []sumetest.Fault{
		{Body: echo, Status: 500},
		{Body: echo, Status: 422},
		{Body: echo},
		{Body: plantedKey + sumetest.SignedURL},
		{Status: 302, Header: map[string]string{"Location": sumetest.SignedURL}},
		{Break: sumetest.BreakReset},
	} {
		id := fmt.Sprintf("odd_%d", i)
		s.due(t, sumetest.Plan{}, id)
		s.api.SetFault(id, fault)
	}
	b.tick(t)
	s.zero(t, `SELECT count(*) FROM video_jobs WHERE last_error ~ 'planted|https?:|X-Signature'`)
	if n := s.number(t, charged); n != 6 {
		t.Errorf("%d rows charged, want the 6 odd ones", n)
	}
	s.pass(t, time.Minute)
	s.api.SetKeys("another")
	b.fails(t, poller.KindUnauthorized)
	s.vault.Set(plantedKeyID, "REPLACE_ME", false)
	s.sandbox(t).fails(t, poller.KindSecret)
	s.vault.Set(plantedKeyID, plantedKey+"\n"+plantedKey, false)
	s.sandbox(t).fails(t, poller.KindSecret)
	s.vault.Set(plantedKeyID, plantedKey, false)
	for _, database := range []string{
		"postgres://poller:" + plantedPassword + "@127.0.0.1:1/jobs", "postgres://poller:" + plantedPassword + "@db.invalid/jobs",
		"postgres://poller:" + plantedPassword + "@:x/jobs", "postgres://poller:" + plantedPassword + "@db.invalid/jobs?sslmode=require",
		"user=poller password=" + plantedPassword + " host=127.0.0.1 port=1 dbname='jobs",
	} {
		faulty := s.limited(t, 10*time.Second, config.DatabaseURL+"="+database)
		if got := faulty.invoke(t, ""); got.Failure == nil || got.TimedOut {
			t.Errorf("%s: answer %s", database, got.Body())
		}
	}
	// The log that is searched at the end of the test is complete.
	until(t, "two summary lines", func() bool { return strings.Count(b.Log(), `"message":"run"`) == 2 })
	if !strings.Contains(b.Log(), `"message":"job failing"`) {
		t.Errorf("no failing job in the log:\n%s", b.Log())
	}
}
