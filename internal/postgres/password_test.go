package postgres_test

import (
	"testing"
	"time"

	"sumepoller/internal/config"
	"sumepoller/internal/postgres"
	"sumepoller/internal/postgres/jobs"
	"sumepoller/internal/secrets"
)

func TestConnect_PasswordRotated(t *testing.T) {
	t.Parallel()
	s := startServer(t, newAuthority(t))
	where := map[string]any{"host": "127.0.0.1", "port": portOf(t, s.address), "dbname": "app"}
	s.setPassword(t, "old")
	v := &vault{value: login("old", where)}
	pool, err := postgres.Connect(t.Context(), config.Database{SecretID: "db", MaxConns: 2}, secrets.NewCache(v))
	if err != nil {
		t.Fatal(err)
	}
	defer postgres.Close(pool, time.Minute)
	if _, err := pool.Exec(t.Context(), `CREATE TABLE read_budget (day date PRIMARY KEY, reads integer NOT NULL)`); err != nil {
		t.Fatal(err)
	}
	store := jobs.New(pool)

	s.setPassword(t, "new")
	v.set(login("new", where))
	s.exec(t, `SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE usename = 'poller'`)
	if _, err := store.Today(t.Context()); err != nil {
		t.Errorf("after the rotation: %v", err)
	}
	if n := v.count(); n != 2 {
		t.Errorf("%d fetches, want the second for the refused login", n)
	}

	s.setPassword(t, "newer") // and the secret does not follow
	s.exec(t, `SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE usename = 'poller'`)
	if _, err := store.Today(t.Context()); postgres.SQLState(err) != "28P01" {
		t.Errorf("error %v, want 28P01", err)
	}
	if n := v.count(); n != 3 {
		t.Errorf("%d fetches, want one further attempt and no more", n)
	}
}
