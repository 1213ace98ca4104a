package stack_test

import (
	"bytes"
	"context"
	"net/url"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"go.uber.org/goleak"

	"sumepoller/internal/devstack/environment"
	"sumepoller/internal/devstack/stack"
)

func TestMain(m *testing.M) {
	environment.Isolate()
	goleak.VerifyTestMain(m)
}

// serverURL returns the server that make test started.
func serverURL(t *testing.T) string {
	t.Helper()
	connString := os.Getenv("DEV_DATABASE_URL")
	if connString == "" {
		t.Fatal("DEV_DATABASE_URL is not set: run `make test`, which starts a server")
	}
	return connString
}

func TestRun(t *testing.T) {
	t.Parallel()
	server := serverURL(t)
	before := databases(t, server)
	var out bytes.Buffer
	err := stack.Run(t.Context(), stack.Options{
		Jobs: 20, Server: server, Bound: 2 * time.Minute, Buying: time.Second, Life: 3 * time.Second, Out: &out,
	})
	if err != nil {
		t.Errorf("got %v\n%s", err, &out)
	}
	for _, want := range []string{"completed", "limits", "are lifted", "lateness of", "billed 20 jobs"} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("output lacks %q:\n%s", want, &out)
		}
	}
	secrets := []string{"sume_", "postgres://", "X-Signature"}
	if u, err := url.Parse(server); err == nil {
		if password, ok := u.User.Password(); ok {
			secrets = append(secrets, password)
		}
	}
	for _, secret := range secrets {
		// The database's name begins with the same letters as a key.
		if strings.Contains(strings.ReplaceAll(out.String(), "sumepoller_run", ""), secret) {
			t.Errorf("output holds %q:\n%s", secret, &out)
		}
	}
	if after := databases(t, server); after > before {
		t.Errorf("%d databases of runs are left, %d were there before", after, before)
	}
}

func TestRun_OutOfTime(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	err := stack.Run(t.Context(), stack.Options{
		Jobs: 3, Server: serverURL(t), Bound: 2 * time.Second, Buying: time.Second, Life: time.Minute, Out: &out,
	})
	if err == nil || !strings.Contains(err.Error(), "within 2s") {
		t.Errorf("got %v, want the time bound", err)
	}
	if !strings.Contains(out.String(), "pending") {
		t.Errorf("output does not say how many jobs are pending:\n%s", &out)
	}
}

func TestRun_ServerUnreachable(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	err := stack.Run(t.Context(), stack.Options{
		Jobs: 1, Server: "postgres://postgres:hidden@127.0.0.1:1/postgres", Bound: time.Minute,
		Buying: time.Second, Life: time.Second, Out: &out,
	})
	if err == nil || strings.Contains(err.Error()+out.String(), "hidden") {
		t.Errorf("got %v, want an error without the password", err)
	}
}

// databases counts the databases of all runs, also of those outside this test.
func databases(t *testing.T, server string) int {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), server)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(context.WithoutCancel(t.Context()))
	var n int
	const sql = `SELECT count(*) FROM pg_database WHERE datname LIKE 'sumepoller\_run\_%'`
	if err := conn.QueryRow(t.Context(), sql).Scan(&n); err != nil {
		t.Fatal(err)
	}
	return n
}

func TestWithDatabase(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ when, in, want string }{
		{"a URL", "postgres://u:p%40@h:5/postgres?sslmode=disable", "postgres://u:p%40@h:5/new?sslmode=disable"},
		{"a URL that names it in its query", "postgres://h/?dbname=old&host=%2Ftmp", "postgres://h/new?host=%2Ftmp"},
		{"keywords and values", "host=/tmp user=u dbname=old", "host=/tmp user=u dbname=old dbname=new"},
	} {
		t.Run(c.when, func(t *testing.T) {
			t.Parallel()
			got, err := stack.WithDatabase(c.in, "new")
			if err != nil || got != c.want {
				t.Errorf("got %q, %v, want %q", got, err, c.want)
			}
			if cfg, err := pgx.ParseConfig(got); err != nil || cfg.Database != "new" {
				t.Errorf("the driver reads another database from %q (%v)", got, err)
			}
		})
	}
}

func TestPercentile(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		when           string
		values         []float64
		counts         []int
		reads          int
		p50, p99, most time.Duration
	}{
		{"no read", nil, nil, 0, 0, 0, 0},
		{"one read", []float64{0.5}, []int{1}, 1, 500 * time.Millisecond, 500 * time.Millisecond, 500 * time.Millisecond},
		{"99 on time, one late", []float64{2, 0}, []int{1, 99}, 100, 0, 0, 2 * time.Second},
		{"98 on time, two late", []float64{2, 0}, []int{2, 98}, 100, 0, 2 * time.Second, 2 * time.Second},
	} {
		t.Run(c.when, func(t *testing.T) {
			t.Parallel()
			reads, p50, p99, most := stack.Percentiles(c.values, c.counts)
			if reads != c.reads || p50 != c.p50 || p99 != c.p99 || most != c.most {
				t.Errorf("got %d %s %s %s, want %d %s %s %s", reads, p50, p99, most, c.reads, c.p50, c.p99, c.most)
			}
		})
	}
}
