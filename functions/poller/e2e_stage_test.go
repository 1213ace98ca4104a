package main_test

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"net/url"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"sumepoller/internal/config"
	"sumepoller/internal/devstack"
	"sumepoller/internal/pgtest"
	"sumepoller/internal/poller"
	"sumepoller/internal/sume/sumetest"
)

// Planted where a secret belongs; none may stand in anything that a function
// puts out.
const (
	plantedKeyID    = "sume/planted"
	plantedKey      = "sk_planted_8b1f5a"
	plantedPassword = "pw-planted-c07e"
	plantedAWSKey   = "aws-planted-55d2"
)

// patience bounds every wait for something that is certain to come.
const patience = 2 * time.Minute

// built is the poller's bootstrap, built once.
var built = sync.OnceValues(func() (string, error) {
	return devstack.Bootstrap(context.Background(), "poller")
})

// stage is what sandboxes play on: a database, the API and Secrets Manager.
type stage struct {
	api      *sumetest.API
	vault    *sumetest.Secrets
	url      string // of API and Secrets Manager
	database string // URL
	db       *pgxpool.Pool
	options  sumetest.Options
}

// newStage has a migrated database without rows.
func newStage(t *testing.T) *stage {
	t.Helper()
	return stageOn(t, pgtest.URL(t))
}

func stageOn(t *testing.T, database string) *stage {
	t.Helper()
	s := &stage{vault: sumetest.NewSecrets(), options: sumetest.Options{Keys: []string{plantedKey}}}
	s.api = sumetest.New(s.options)
	s.vault.Set(plantedKeyID, plantedKey, false)
	server, err := sumetest.Listen(sumetest.Handler(s.api, s.vault))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(server.Close)
	s.url, s.database, s.db = server.URL, withPassword(t, database), pgtest.Pool(t, database)
	return s
}

// slow makes each read take from least to most.
func (s *stage) slow(least, most time.Duration) {
	s.options.Latency, s.options.LatencyMax = least, most
	s.api.SetOptions(s.options)
}

// withPassword plants a password in a URL that has none. Where the server asks
// for none, it takes any.
func withPassword(t *testing.T, database string) string {
	t.Helper()
	u, err := url.Parse(database)
	if err != nil {
		t.Fatal(err)
	}
	if _, set := u.User.Password(); !set {
		u.User = url.UserPassword(u.User.Username(), plantedPassword)
	}
	return u.String()
}

// at returns a database's URL with another address, such as a proxy's.
func at(t *testing.T, database, address string) string {
	t.Helper()
	u, err := url.Parse(database)
	if err != nil {
		t.Fatal(err)
	}
	u.Host = address
	return u.String()
}

// host is the address in a URL.
func host(t *testing.T, address string) string {
	t.Helper()
	u, err := url.Parse(address)
	if err != nil {
		t.Fatal(err)
	}
	return u.Host
}

// environment is what a sandbox sees; environ goes over it.
func (s *stage) environment(environ []string) map[string]string {
	env := map[string]string{
		config.APIKeySecretID: plantedKeyID, config.APIBaseURL: s.url, config.DatabaseURL: s.database,
		config.ReadsPerMinute: "0", config.ReadsPerDay: "0", config.LogLevel: "debug",
		"AWS_REGION": "eu-central-1", "AWS_ACCESS_KEY_ID": "id", "AWS_SECRET_ACCESS_KEY": plantedAWSKey,
		"AWS_EC2_METADATA_DISABLED": "true", "AWS_ENDPOINT_URL_SECRETS_MANAGER": s.url,
	}
	for _, variable := range environ {
		name, value, _ := strings.Cut(variable, "=")
		env[name] = value
	}
	maps.DeleteFunc(env, func(_, value string) bool { return value == "" })
	return env
}

// sandbox is one built function in the emulator.
type sandbox struct {
	*devstack.Function
	secrets []string
}

// sandbox starts one with a limit of a minute.
func (s *stage) sandbox(t *testing.T, environ ...string) *sandbox {
	t.Helper()
	return s.limited(t, time.Minute, environ...)
}

// limited starts a sandbox with a limit of its own. When the test ends, its log
// is searched for secrets.
func (s *stage) limited(t *testing.T, limit time.Duration, environ ...string) *sandbox {
	t.Helper()
	bootstrap, err := built()
	if err != nil {
		t.Fatal(err)
	}
	env := s.environment(environ)
	f, err := devstack.StartFunction(t.Context(), "poller", bootstrap, env, limit)
	if err != nil {
		t.Fatal(err)
	}
	b := &sandbox{Function: f, secrets: []string{plantedKey, plantedPassword, plantedAWSKey, sumetest.SignedURL, "X-Signature", "postgres://"}}
	if u, err := url.Parse(env[config.DatabaseURL]); err == nil && u.User != nil {
		password, _ := u.User.Password()
		b.secrets = append(b.secrets, u.String(), password)
	}
	t.Cleanup(func() {
		f.Stop()
		b.discreet(t, f.Log())
	})
	return b
}

// discreet wants no secret in what a function put out.
func (b *sandbox) discreet(t *testing.T, text string) {
	t.Helper()
	for _, secret := range b.secrets {
		if secret != "" && strings.Contains(text, secret) {
			t.Errorf("%q stands in the output:\n%s", secret, excerpt(text, secret))
		}
	}
}

func excerpt(text, word string) string {
	i := strings.Index(text, word)
	return text[max(0, i-400):min(len(text), i+400)]
}

// invoke invokes the schedule's pass and wants some answer.
func (b *sandbox) invoke(t *testing.T, requestID string) devstack.Result {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	got, err := b.InvokeAs(ctx, requestID, []byte(`{}`))
	if err != nil {
		t.Fatalf("%v\n%s", err, b.Log())
	}
	b.discreet(t, string(got.Body()))
	return got
}

// tick wants a pass that does its work.
func (b *sandbox) tick(t *testing.T) poller.Summary {
	t.Helper()
	got := b.invoke(t, "")
	if got.Failure != nil {
		t.Fatalf("the tick failed: %v", got.Failure)
	}
	return summary(t, string(got.Payload))
}

// fails wants a pass that fails with an error of this kind, and its summary.
func (b *sandbox) fails(t *testing.T, kind string) (line string, sum poller.Summary) {
	t.Helper()
	got := b.invoke(t, "")
	if got.Failure == nil || got.TimedOut || !strings.HasPrefix(got.Failure.Message, kind+": ") {
		t.Fatalf("answer %s, want an error that begins with %s:", got.Body(), kind)
	}
	line, rest, _ := strings.Cut(got.Failure.Message, "\n")
	return line, summary(t, rest)
}

// begin invokes in the background; the answer is waited for when it is asked.
// A sandbox that is killed meanwhile has none.
func (b *sandbox) begin(t *testing.T, requestID string) (answer func() (devstack.Result, error)) {
	t.Helper()
	var got devstack.Result
	var err error
	done := make(chan struct{})
	go func() {
		defer close(done)
		got, err = b.InvokeAs(t.Context(), requestID, []byte(`{}`))
	}()
	return func() (devstack.Result, error) {
		<-done
		b.discreet(t, string(got.Body()))
		return got, err
	}
}

// answered wants the summary of a pass that was begun and did its work.
func answered(t *testing.T, answer func() (devstack.Result, error)) poller.Summary {
	t.Helper()
	got, err := answer()
	if err != nil || got.Failure != nil {
		t.Fatalf("error %v, failure %v", err, got.Failure)
	}
	return summary(t, string(got.Payload))
}

func summary(t *testing.T, text string) (s poller.Summary) {
	t.Helper()
	if err := json.Unmarshal([]byte(text), &s); err != nil {
		t.Fatalf("%v in %q", err, text)
	}
	return s
}

// ids returns n names with a prefix.
func ids(prefix string, n int) []string {
	names := make([]string, n)
	for i := range names {
		names[i] = fmt.Sprintf("%s_%04d", prefix, i)
	}
	return names
}
