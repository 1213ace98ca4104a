package main

import (
	"cmp"
	"context"
	"encoding/json"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"sumepoller/internal/config"
	"sumepoller/internal/poller"
	"sumepoller/internal/secrets"
	"sumepoller/internal/sume/sumetest"
)

func TestKey_Rotated(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.run(t)
	w.api.SetKeys("sk_test_new")
	w.vault.Set(keyID, `{"api_key": "sk_test_new"}`, false)
	w.jobs(t, sumetest.Plan{}, "job_1", "job_2", "job_3")
	if got := w.run(t); got.Finished["completed"] != 3 {
		t.Errorf("summary %+v", got)
	}
	if calls := w.vault.Calls(); calls != 2 {
		t.Errorf("%d calls of Secrets Manager, want 2", calls)
	}
}

func TestKey_Refused(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.jobs(t, sumetest.Plan{}, "job_1", "job_2", "job_3")
	w.api.SetKeys("another")
	_ = w.fails(t, t.Context(), poller.KindUnauthorized)
	w.untouched(t)
	if names := w.metrics(t); len(names) != 12 {
		t.Errorf("%d metrics: %v", len(names), names)
	}
	w.vault.Set(keyID, "another", false)
	if got := w.run(t); got.Finished["completed"] != 3 {
		t.Errorf("with the right key: %+v", got)
	}
}

func TestKey_Unusable(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		set  func(*sumetest.Secrets)
		want string
	}{
		"missing":     {func(s *sumetest.Secrets) { s.Remove(keyID) }, "not found"},
		"placeholder": {func(s *sumetest.Secrets) { s.Set(keyID, "REPLACE_ME", false) }, "REPLACE_ME"},
		"empty":       {func(s *sumetest.Secrets) { s.Set(keyID, "", false) }, "empty"},
		"binary":      {func(s *sumetest.Secrets) { s.Set(keyID, apiKey, true) }, "binary"},
		"two lines":   {func(s *sumetest.Secrets) { s.Set(keyID, apiKey+"\n"+apiKey, false) }, "control"},
		"silent":      {func(s *sumetest.Secrets) { s.Silence(true) }, "VPC endpoint"},
		"failing":     {func(s *sumetest.Secrets) { s.Fail(true) }, "InternalServiceError"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			w.jobs(t, sumetest.Plan{}, "job_1")
			test.set(w.vault)
			began := time.Now()
			err := w.fails(t, t.Context(), poller.KindSecret)
			if !strings.Contains(err.Error(), keyID) || !strings.Contains(err.Error(), test.want) {
				t.Errorf("error %q, want the secret's id and %q", err, test.want)
			}
			if took := time.Since(began); took > time.Minute {
				t.Errorf("took %v", took)
			}
			w.untouched(t)
			if reads := w.api.Stats().Reads; reads > 0 {
				t.Errorf("%d reads", reads)
			}
		})
	}
}

func TestKey_SecretsManagerDown(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.vault.Throttle(2)
	w.run(t)
	w.vault.Fail(true)
	w.jobs(t, sumetest.Plan{}, "job_1")
	if got := w.run(t); got.Finished["completed"] != 1 {
		t.Errorf("summary %+v", got)
	}
}

func TestDatabase_Unreachable(t *testing.T) {
	t.Parallel()
	silent := listener(t)
	// No process listens on port 1 of the loopback interface, and no other test gets it.
	for name, address := range map[string]string{"closed port": "127.0.0.1:1", "silent": silent.Addr().String()} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			w.cfg.Database.URL = "postgres://poller:hunter2@" + address + "/jobs"
			ctx, cancel := context.WithTimeout(t.Context(), 2*time.Second)
			defer cancel()
			err := w.fails(t, ctx, poller.KindDatabase)
			if ctx.Err() != nil {
				t.Error("the answer came after the limit")
			}
			for _, out := range []string{err.Error(), w.stderr.String()} {
				if strings.Contains(out, "hunter2") {
					t.Errorf("the password is in %s", out)
				}
			}
			if names := w.metrics(t); len(names) != 5 { // those of the table are unknown
				t.Errorf("%d metrics: %v", len(names), names)
			}
		})
	}
}

// A run that Lambda ends at its timeout would print no metrics.
func TestRun_AnswersBeforeDeadline(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "POLL_BUDGET=58s")
	w.jobs(t, sumetest.Plan{}, "job_1", "job_2", "job_3")
	w.api.SetFault("", sumetest.Fault{Delay: 10 * time.Second})
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Second)
	defer cancel()
	answer, err := w.invoke(t, ctx, `{}`)
	if err != nil || ctx.Err() != nil {
		t.Fatalf("error %v, context %v", err, ctx.Err())
	}
	if got := decode[poller.Summary](t, answer); got.Stopped != poller.StoppedBudget {
		t.Errorf("summary %+v", got)
	}
	if names := w.metrics(t); len(names) != 12 {
		t.Errorf("%d metrics: %v", len(names), names)
	}
}

type panicking struct{}

func (panicking) Fetch(context.Context, string) (string, error) { panic("boom") }

func TestRun_Panic(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.key = secrets.NewAPIKey(secrets.NewCache(panicking{}), keyID)
	defer func() {
		if recover() == nil {
			t.Error("the panic was swallowed; want it to end the sandbox")
		}
		w.checkOutput(t)
	}()
	_, _ = w.Invoke(t.Context(), nil)
}

// fails invokes a scheduled run and wants a run error of this kind, followed by the
// summary.
func (w *world) fails(t *testing.T, ctx context.Context, kind string) error {
	t.Helper()
	answer, err := w.invoke(t, ctx, `{}`)
	if err == nil {
		t.Fatalf("no error, answer %s", answer)
	}
	line, summary, ok := strings.Cut(err.Error(), "\n")
	if !ok || !strings.HasPrefix(line, kind+": ") || strings.Contains(line, apiKey) {
		t.Errorf("error %q, want %s: …, then the summary", err, kind)
	}
	if got := decode[poller.Summary](t, []byte(summary)); got.RunID != "req-1" || got.Stopped == "" {
		t.Errorf("summary %s", summary)
	}
	return err
}

// listener accepts connections and sends nothing.
func listener(t *testing.T) net.Listener {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() })
	return l
}

func TestDatabase_Secret(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	at, err := pgx.ParseConfig(w.cfg.Database.URL)
	if err != nil {
		t.Fatal(err)
	}
	w.cfg.Database = config.Database{SecretID: "db", Host: at.Host, Port: int(at.Port), Name: at.Database, MaxConns: 2}
	w.jobs(t, sumetest.Plan{}, "job_1")
	if err := w.fails(t, t.Context(), poller.KindSecret); !strings.Contains(err.Error(), "db: not found") {
		t.Errorf("error %v", err)
	}
	w.untouched(t)
	// A server that asks for no password accepts any.
	login, err := json.Marshal(map[string]string{"username": at.User, "password": cmp.Or(at.Password, "p# %?/:@[")})
	if err != nil {
		t.Fatal(err)
	}
	w.vault.Set("db", string(login), false)
	if got := w.run(t); got.Finished["completed"] != 1 {
		t.Errorf("summary %+v", got)
	}
}
