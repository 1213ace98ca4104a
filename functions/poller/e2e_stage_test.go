package main_test

import (
	"context"
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
	"sumepoller/internal/sume/sumetest"
)

// Secrets that the functions use. No output may hold them.
const (
	plantedKeyID    = "sume/planted"
	plantedKey      = "sk_planted_8b1f5a"
	plantedPassword = "pw-planted-c07e"
	plantedAWSKey   = "aws-planted-55d2"
)

// patience is the longest wait for something that must happen.
const patience = time.Minute

// built is the poller's bootstrap, built once.
var built = sync.OnceValues(func() (string, error) {
	return devstack.Bootstrap(context.Background(), "poller")
})

// stage is what sandboxes use: a database, the API and Secrets Manager.
type stage struct {
	api      *sumetest.API
	vault    *sumetest.Secrets
	url      string // of the API and Secrets Manager
	database string // URL
	db       *pgxpool.Pool
	options  sumetest.Options
}

// newStage returns a stage whose database is migrated and empty.
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

// withPassword adds a password to a URL that has none. A server that asks for
// none accepts any.
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

// at returns a database's URL with another address, such as that of a proxy.
func at(t *testing.T, database, address string) string {
	t.Helper()
	u, err := url.Parse(database)
	if err != nil {
		t.Fatal(err)
	}
	u.Host = address
	return u.String()
}

// named returns a database's URL with an application_name.
func named(t *testing.T, database, application string) string {
	t.Helper()
	u, err := url.Parse(database)
	if err != nil {
		t.Fatal(err)
	}
	query := u.Query()
	query.Set("application_name", application)
	u.RawQuery = query.Encode()
	return u.String()
}

// host returns the address in a URL.
func host(t *testing.T, address string) string {
	t.Helper()
	u, err := url.Parse(address)
	if err != nil {
		t.Fatal(err)
	}
	return u.Host
}

// environment returns a sandbox's environment, with the variables of environ.
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

// ids returns n names with a prefix.
func ids(prefix string, n int) []string {
	names := make([]string, n)
	for i := range names {
		names[i] = fmt.Sprintf("%s_%04d", prefix, i)
	}
	return names
}
