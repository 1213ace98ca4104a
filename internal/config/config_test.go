package config_test

import (
	"errors"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"sumepoller/internal/config"
)

func TestLoadPoller_Defaults(t *testing.T) {
	t.Parallel()
	want := config.Poller{
		Sume: config.Sume{
			APIKeySecretID: "sume/key", API: config.API{BaseURL: "https://api.sume.com/v1"},
			AuthMode: "bearer", RequestTimeout: 15 * time.Second,
		},
		Reads:    config.Reads{PerMinute: 120, PerDay: 10_000},
		Database: config.Database{URL: "postgres://db/app", Port: 5432, MaxConns: 4},
		Poll: config.Poll{
			Budget: 58 * time.Second, Concurrency: 64, Lease: 30 * time.Second, DefaultInterval: 15 * time.Second,
			MinInterval: time.Second, MaxInterval: time.Hour, BackoffMax: 15 * time.Minute,
		},
		Log: config.Log{LogLevel: slog.LevelInfo},
	}
	got, err := config.LoadPoller(needed())
	if diff := cmp.Diff(want, got); diff != "" || err != nil {
		t.Errorf("error %v, (-want +got):\n%s", err, diff)
	}
}

func TestLoadPoller_EveryVariable(t *testing.T) {
	t.Parallel()
	want := config.Poller{
		Sume: config.Sume{
			APIKeySecretID: "arn:aws:secretsmanager:eu-central-1:111122223333:secret:key-AbCdEf", API: config.API{BaseURL: "http://127.0.0.1:8080/sume/v1"},
			AuthMode: "x-api-key", RequestTimeout: 2 * time.Second,
		},
		Database: config.Database{
			URL: "postgres://db/app", SecretID: "db", Host: "db.internal", Port: 6432,
			Name: "app", User: "poller", Auth: "iam", MaxConns: 2,
		},
		Poll: config.Poll{
			Budget: 9 * time.Second, Concurrency: 8, Lease: 4 * time.Second, DefaultInterval: 10 * time.Second,
			MinInterval: 100 * time.Millisecond, MaxInterval: time.Minute, BackoffMax: 24 * time.Hour,
		},
		Log: config.Log{LogLevel: slog.LevelDebug},
	}
	got, err := config.LoadPoller([]string{
		"SUME_API_KEY_SECRET_ID=arn:aws:secretsmanager:eu-central-1:111122223333:secret:key-AbCdEf",
		"SUME_API_BASE_URL=http://127.0.0.1:8080/sume/", "SUME_API_AUTH_MODE=x-api-key", "SUME_REQUEST_TIMEOUT=2s",
		"SUME_READS_PER_MINUTE=0", "SUME_READS_PER_DAY=0",
		"DATABASE_URL=postgres://db/app", "DATABASE_SECRET_ID=db", "DATABASE_HOST=db.internal", "DATABASE_PORT=6432",
		"DATABASE_NAME=app", "DATABASE_USER=poller", "DATABASE_AUTH=iam", "DATABASE_MAX_CONNS=2",
		"POLL_BUDGET=9s", "POLL_CONCURRENCY=8", "POLL_LEASE=4s", "POLL_DEFAULT_INTERVAL=10s",
		"POLL_MIN_INTERVAL=100ms", "POLL_MAX_INTERVAL=1m", "POLL_BACKOFF_MAX=24h", "LOG_LEVEL=DEBUG",
	})
	if diff := cmp.Diff(want, got); diff != "" || err != nil {
		t.Errorf("error %v, (-want +got):\n%s", err, diff)
	}
}

func TestLoadPoller_Invalid(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		environ []string // added to needed()
		want    string   // one line; empty: valid
	}{
		"duration without a unit":    {[]string{"POLL_BUDGET=58"}, `POLL_BUDGET: "58" does not parse; want a duration with its unit, such as 15s`},
		"fraction for an integer":    {[]string{"POLL_CONCURRENCY=1.5"}, `POLL_CONCURRENCY: "1.5" does not parse; want an integer`},
		"integer too large":          {[]string{"SUME_READS_PER_DAY=99999999999999999999"}, `SUME_READS_PER_DAY: the value does not parse; want an integer`},
		"unknown level":              {[]string{"LOG_LEVEL=loud"}, `LOG_LEVEL: "loud" does not parse; want debug, info, warn or error`},
		"no budget":                  {[]string{"POLL_BUDGET=0s"}, `POLL_BUDGET: 0s is not positive; want a duration above zero, such as 15s`},
		"no concurrency":             {[]string{"POLL_CONCURRENCY=0"}, `POLL_CONCURRENCY: 0 is out of range; want an integer from 1 to 10000`},
		"no connections":             {[]string{"DATABASE_MAX_CONNS=0"}, `DATABASE_MAX_CONNS: 0 is out of range; want an integer from 1 to 1000`},
		"port too large":             {[]string{"DATABASE_PORT=65536"}, `DATABASE_PORT: 65536 is out of range; want an integer from 1 to 65535`},
		"negative reads":             {[]string{"SUME_READS_PER_MINUTE=-1"}, `SUME_READS_PER_MINUTE: -1 is negative; want an integer; 0 sets no limit`},
		"no limits on reads":         {[]string{"SUME_READS_PER_MINUTE=0", "SUME_READS_PER_DAY=0"}, ""},
		"lease as long as a read":    {[]string{"POLL_LEASE=15s"}, `POLL_LEASE: 15s leaves too little time beside SUME_REQUEST_TIMEOUT (15s); want at least 18s, or a shorter timeout`},
		"lease a little longer":      {[]string{"POLL_LEASE=15.004s"}, `POLL_LEASE: 15.004s leaves too little time beside SUME_REQUEST_TIMEOUT (15s); want at least 18s, or a shorter timeout`},
		"lease long enough":          {[]string{"POLL_LEASE=18s"}, ""},
		"short lease long enough":    {[]string{"POLL_LEASE=400ms", "SUME_REQUEST_TIMEOUT=300ms"}, ""},
		"lease above its maximum":    {[]string{"POLL_LEASE=16m"}, `POLL_LEASE: 16m0s is too long; want at most 15m0s`},
		"minimum above maximum":      {[]string{"POLL_MIN_INTERVAL=2h"}, `POLL_MIN_INTERVAL: 2h0m0s exceeds POLL_MAX_INTERVAL (1h0m0s); want at most that`},
		"minimum equal to maximum":   {[]string{"POLL_MIN_INTERVAL=1h"}, ""},
		"empty values":               {[]string{"POLL_BUDGET=", "DATABASE_PORT="}, ""},
		"unknown auth mode":          {[]string{"SUME_API_AUTH_MODE=basic"}, `SUME_API_AUTH_MODE: "basic" is unknown; want bearer or x-api-key`},
		"secret id with a space":     {[]string{"SUME_API_KEY_SECRET_ID=my key"}, `SUME_API_KEY_SECRET_ID: holds whitespace or control characters; want the id or ARN of the secret that holds the API key`},
		"no secret id":               {[]string{"SUME_API_KEY_SECRET_ID="}, `SUME_API_KEY_SECRET_ID: not set; want the id or ARN of the secret that holds the API key`},
		"plain http on loopback":     {[]string{"SUME_API_BASE_URL=http://[::1]:80"}, ""},
		"plain http elsewhere":       {[]string{"SUME_API_BASE_URL=http://api.sume.com/v1"}, badBaseURL("is plain http beyond loopback")},
		"base URL without scheme":    {[]string{"SUME_API_BASE_URL=api.sume.com"}, badBaseURL("is not an absolute URL")},
		"base URL of another scheme": {[]string{"SUME_API_BASE_URL=ftp://api.sume.com"}, badBaseURL("is neither https nor http")},
		"base URL with a login":      {[]string{"SUME_API_BASE_URL=https://u:hunter2@api.sume.com"}, badBaseURL("holds a login, a query or a fragment")},
		"no database":                {[]string{"DATABASE_URL="}, `DATABASE_URL: not set; want a connection string; or set DATABASE_SECRET_ID; or set DATABASE_AUTH=iam, DATABASE_HOST, DATABASE_NAME and DATABASE_USER`},
		"secret without a host":      {[]string{"DATABASE_URL=", "DATABASE_SECRET_ID=db"}, ""},
		"IAM without a role": {
			[]string{"DATABASE_URL=", "DATABASE_AUTH=iam", "DATABASE_HOST=db", "DATABASE_NAME=app"},
			`DATABASE_USER: not set; want the role that logs in`,
		},
		"IAM beside a secret": {
			[]string{"DATABASE_URL=", "DATABASE_AUTH=iam", "DATABASE_SECRET_ID=db"},
			`DATABASE_AUTH: is set beside DATABASE_SECRET_ID; want one of the two`,
		},
		"keyword connection string": {[]string{"DATABASE_URL=host=/run/postgresql dbname='a://b'"}, ""},
		"connection string of another database": {
			[]string{"DATABASE_URL=mysql://app:hunter2@db/app"},
			noParse,
		},
		"connection string with a raw percent": {
			[]string{"DATABASE_URL=postgres://app:hunter2%zz@db/app"},
			noParse,
		},
		"connection string without a database": {[]string{"DATABASE_URL=hunter2"}, noParse},
		"root certificates missing": {
			[]string{"DATABASE_URL=postgres://u:hunter2@db/app?sslrootcert=/missing.pem"},
			"DATABASE_URL: a file that it names cannot be read: open /missing.pem: no such file or directory; want the path of a file that the function has",
		},
		"TLS not verified":              {[]string{"DATABASE_URL=postgres://u:hunter2@db/app?sslmode=require"}, badMode("require")},
		"TLS not verified, keywords":    {[]string{"DATABASE_URL=host=db user=u password=hunter2 sslmode=verify-full sslmode=prefer"}, badMode("prefer")},
		"TLS off on one of two servers": {[]string{"DATABASE_URL=postgres://127.0.0.1,db/app?sslmode=disable"}, badMode("disable")},
		"TLS off on loopback":           {[]string{"DATABASE_URL=postgres://127.0.0.1,localhost/app?sslmode=disable"}, ""},
		"TLS off on a Unix socket":      {[]string{"DATABASE_URL=host=/run/postgresql sslmode=disable"}, ""},
		"TLS verified":                  {[]string{"DATABASE_URL=postgres://db/app?sslmode=verify-ca"}, ""},
		"unknown database auth":         {[]string{"DATABASE_URL=", "DATABASE_AUTH=kerberos"}, `DATABASE_AUTH: "kerberos" is unknown; want iam, or nothing`},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, err := config.LoadPoller(append(needed(), test.environ...))
			got := ""
			if err != nil {
				got = err.Error()
			}
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func badBaseURL(problem string) string {
	return "SUME_API_BASE_URL: " + problem + "; want a URL such as https://api.sume.com/v1; http only on loopback"
}

func badMode(mode string) string {
	return "DATABASE_URL: sslmode=" + mode + " does not verify the server; want sslmode=verify-full, or no sslmode"
}

const noParse = "DATABASE_URL: does not parse; want postgres://USER:PASSWORD@HOST:PORT/NAME, " +
	"each part percent-encoded where it holds whitespace or any of # % ? / : @ [; or host=… dbname=…"

func TestLoadPoller_AllErrorsAtOnce(t *testing.T) {
	t.Parallel()
	const secret = "sk_live_abcdefghijklmnopqrstuvwxyz"
	_, err := config.LoadPoller([]string{
		"SUME_API_KEY_SECRET_ID=" + secret + " ", "SUME_API_BASE_URL=https://" + secret + "@api.sume.com", "SUME_API_AUTH_MODE=" + secret,
		"DATABASE_URL=" + secret, "DATABASE_AUTH=" + secret, "DATABASE_PORT=" + secret,
		"POLL_BUDGET=" + secret, "POLL_LEASE=1s", "POLL_CONCURRENCY=-3", "LOG_LEVEL=" + secret,
	})
	var errs config.Errors
	if !errors.As(err, &errs) {
		t.Fatalf("error %v, want config.Errors", err)
	}
	got := map[string]int{}
	for _, e := range errs {
		got[e.Name]++
	}
	want := map[string]int{
		"SUME_API_KEY_SECRET_ID": 1, "SUME_API_BASE_URL": 1, "SUME_API_AUTH_MODE": 1,
		"DATABASE_URL": 1, "DATABASE_AUTH": 1, "DATABASE_PORT": 1,
		"POLL_BUDGET": 1, "POLL_LEASE": 1, "POLL_CONCURRENCY": 1, "LOG_LEVEL": 1,
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("errors by variable (-want +got):\n%s", diff)
	}
	if lines := strings.Count(err.Error(), "\n") + 1; lines != len(want) {
		t.Errorf("%d lines, want %d:\n%v", lines, len(want), err)
	}
	if strings.Contains(err.Error(), secret) {
		t.Errorf("the error holds a value:\n%v", err)
	}
}

func TestLoadPoller_BaseURL(t *testing.T) {
	t.Parallel()
	for raw, want := range map[string]string{
		"https://api.sume.com":          "https://api.sume.com/v1",
		"https://api.sume.com/":         "https://api.sume.com/v1",
		"https://api.sume.com/v1":       "https://api.sume.com/v1",
		"https://api.sume.com/v1/":      "https://api.sume.com/v1",
		"HTTPS://api.sume.com/v1":       "https://api.sume.com/v1",
		"https://proxy.example/sume":    "https://proxy.example/sume/v1",
		"https://proxy.example/sumev1/": "https://proxy.example/sumev1/v1",
		"https://proxy.example/a%20b":   "https://proxy.example/a%20b/v1",
		"https://proxy.example/a%2Fb":   "https://proxy.example/a%2Fb/v1",
		"http://localhost:9000/v1":      "http://localhost:9000/v1",
		"http://127.0.0.1:8080":         "http://127.0.0.1:8080/v1",
		"http://[::1]:8080/v1":          "http://[::1]:8080/v1",
		"api.sume.com":                  "",
		"/v1":                           "",
		"https:///v1":                   "",
		"https://:443/v1":               "",
		"http://api.sume.com/v1":        "",
		"http://127.0.0.1.evil.example": "",
		"http://localhost.evil.example": "",
		"ftp://api.sume.com":            "",
		"https://user:s3cr3t@sume.com":  "",
		"https://api.sume.com/v1?x=1":   "",
		"https://api.sume.com/v1#x":     "",
		"https://api.sume.com/\n":       "",
	} {
		cfg, err := config.LoadPoller(append(needed(), "SUME_API_BASE_URL="+raw))
		if want == "" {
			if err == nil || strings.Contains(err.Error(), "s3cr3t") {
				t.Errorf("%q: got %q, %v, want an error", raw, cfg.Sume.BaseURL, err)
			}
			continue
		}
		if cfg.Sume.BaseURL != want || err != nil {
			t.Errorf("%q: got %q, %v, want %q", raw, cfg.Sume.BaseURL, err, want)
		}
	}
}

func TestKeyHeader(t *testing.T) {
	t.Parallel()
	for mode, want := range map[string]string{"": "Authorization: Bearer ", "bearer": "Authorization: Bearer ", "x-api-key": "X-Api-Key: "} {
		cfg, err := config.LoadPoller(append(needed(), "SUME_API_AUTH_MODE="+mode))
		if got := cfg.Sume.KeyHeader(); got != want || err != nil {
			t.Errorf("%q: got %q, %v, want %q", mode, got, err, want)
		}
	}
}

func needed() []string {
	return []string{"SUME_API_KEY_SECRET_ID=sume/key", "DATABASE_URL=postgres://db/app"}
}
