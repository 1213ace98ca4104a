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

func TestLoadPollerWithOnlyTheNeededUsesTheDocumentedDefaults(t *testing.T) {
	t.Parallel()
	want := config.Poller{
		Sume: config.Sume{
			APIKeySecretID: "sume/key", BaseURL: "https://api.sume.com/v1",
			AuthMode: "bearer", RequestTimeout: 15 * time.Second,
		},
		Reads:    config.Reads{PerMinute: 120, PerDay: 10_000},
		Database: config.Database{URL: "postgres://db/app", Port: 5432, MaxConns: 4},
		Poll: config.Poll{
			Budget: 58 * time.Second, Concurrency: 64, Lease: 30 * time.Second, DefaultInterval: 15 * time.Second,
			MinInterval: time.Second, MaxInterval: time.Hour, BackoffMax: 15 * time.Minute,
		},
		LogLevel: slog.LevelInfo,
	}
	got, err := config.LoadPoller(needed())
	if diff := cmp.Diff(want, got); diff != "" || err != nil {
		t.Errorf("error %v, (-want +got):\n%s", err, diff)
	}
}

func TestLoadPollerReadsEveryVariable(t *testing.T) {
	t.Parallel()
	want := config.Poller{
		Sume: config.Sume{
			APIKeySecretID: "arn:aws:secretsmanager:eu-central-1:111122223333:secret:key-AbCdEf", BaseURL: "http://127.0.0.1:8080/sume/v1",
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
		LogLevel: slog.LevelDebug,
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

func TestLoadPollerNamesEachFault(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		environ []string // beside or in place of the needed
		want    string   // one line, or none where the value is fine
	}{
		"duration without a unit":     {[]string{"POLL_BUDGET=58"}, `POLL_BUDGET: "58" does not parse; want a duration with its unit, such as 15s`},
		"fraction for a count":        {[]string{"POLL_CONCURRENCY=1.5"}, `POLL_CONCURRENCY: "1.5" does not parse; want a whole number`},
		"count above any integer":     {[]string{"SUME_READS_PER_DAY=99999999999999999999"}, `SUME_READS_PER_DAY: the value does not parse; want a whole number`},
		"unknown level":               {[]string{"LOG_LEVEL=loud"}, `LOG_LEVEL: "loud" does not parse; want debug, info, warn or error`},
		"no budget":                   {[]string{"POLL_BUDGET=0s"}, `POLL_BUDGET: 0s is not positive; want a duration above zero, such as 15s`},
		"nothing in flight":           {[]string{"POLL_CONCURRENCY=0"}, `POLL_CONCURRENCY: 0 is out of range; want a whole number from 1 to 10000`},
		"no connection":               {[]string{"DATABASE_MAX_CONNS=0"}, `DATABASE_MAX_CONNS: 0 is out of range; want a whole number from 1 to 1000`},
		"port beyond all":             {[]string{"DATABASE_PORT=65536"}, `DATABASE_PORT: 65536 is out of range; want a whole number from 1 to 65535`},
		"negative reads":              {[]string{"SUME_READS_PER_MINUTE=-1"}, `SUME_READS_PER_MINUTE: -1 is negative; want a whole number; 0 sets no limit`},
		"no reads of one's own":       {[]string{"SUME_READS_PER_MINUTE=0", "SUME_READS_PER_DAY=0"}, ""},
		"lease as long as a read":     {[]string{"POLL_LEASE=15s"}, `POLL_LEASE: 15s leaves too little time beside SUME_REQUEST_TIMEOUT (15s); want at least 18s, or a shorter timeout`},
		"lease a little longer":       {[]string{"POLL_LEASE=15.004s"}, `POLL_LEASE: 15.004s leaves too little time beside SUME_REQUEST_TIMEOUT (15s); want at least 18s, or a shorter timeout`},
		"lease long enough":           {[]string{"POLL_LEASE=18s"}, ""},
		"short lease long enough":     {[]string{"POLL_LEASE=400ms", "SUME_REQUEST_TIMEOUT=300ms"}, ""},
		"lease past a function's":     {[]string{"POLL_LEASE=16m"}, `POLL_LEASE: 16m0s is too long; want at most 15m0s`},
		"shortest above longest":      {[]string{"POLL_MIN_INTERVAL=2h"}, `POLL_MIN_INTERVAL: 2h0m0s exceeds POLL_MAX_INTERVAL (1h0m0s); want at most that`},
		"shortest equal to longest":   {[]string{"POLL_MIN_INTERVAL=1h"}, ""},
		"set to nothing":              {[]string{"POLL_BUDGET=", "DATABASE_PORT="}, ""},
		"unknown way to authenticate": {[]string{"SUME_API_AUTH_MODE=basic"}, `SUME_API_AUTH_MODE: "basic" is unknown; want bearer or x-api-key`},
		"secret id with a blank":      {[]string{"SUME_API_KEY_SECRET_ID=my key"}, `SUME_API_KEY_SECRET_ID: holds blanks or control characters; want the id or ARN of the secret that holds the API key`},
		"no secret id":                {[]string{"SUME_API_KEY_SECRET_ID="}, `SUME_API_KEY_SECRET_ID: not set; want the id or ARN of the secret that holds the API key`},
		"plain http on loopback":      {[]string{"SUME_API_BASE_URL=http://[::1]:80"}, ""},
		"plain http elsewhere":        {[]string{"SUME_API_BASE_URL=http://api.sume.com/v1"}, badAddress("is plain http beyond loopback")},
		"address without scheme":      {[]string{"SUME_API_BASE_URL=api.sume.com"}, badAddress("is no address")},
		"address of another kind":     {[]string{"SUME_API_BASE_URL=ftp://api.sume.com"}, badAddress("is neither https nor http")},
		"address with a login":        {[]string{"SUME_API_BASE_URL=https://u:hunter2@api.sume.com"}, badAddress("holds a login, a query or a fragment")},
		"no database":                 {[]string{"DATABASE_URL="}, `DATABASE_URL: not set; want a connection string; or set DATABASE_SECRET_ID; or set DATABASE_AUTH=iam, DATABASE_HOST, DATABASE_NAME and DATABASE_USER`},
		"secret without a host":       {[]string{"DATABASE_URL=", "DATABASE_SECRET_ID=db"}, ""},
		"IAM without a role": {
			[]string{"DATABASE_URL=", "DATABASE_AUTH=iam", "DATABASE_HOST=db", "DATABASE_NAME=app"},
			`DATABASE_USER: not set; want the role that logs in`,
		},
		"IAM beside a secret": {
			[]string{"DATABASE_URL=", "DATABASE_AUTH=iam", "DATABASE_SECRET_ID=db"},
			`DATABASE_AUTH: is set beside DATABASE_SECRET_ID; want one of the two`,
		},
		"connection string in words": {[]string{"DATABASE_URL=host=/run/postgresql dbname='a://b'"}, ""},
		"connection string of another": {
			[]string{"DATABASE_URL=mysql://app:hunter2@db/app"},
			noConnection("is no URL of PostgreSQL"),
		},
		"connection string with a raw percent": {
			[]string{"DATABASE_URL=postgres://app:hunter2%zz@db/app"},
			noConnection("does not parse"),
		},
		"unknown login": {[]string{"DATABASE_URL=", "DATABASE_AUTH=kerberos"}, `DATABASE_AUTH: "kerberos" is unknown; want iam, or nothing`},
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

func badAddress(what string) string {
	return "SUME_API_BASE_URL: " + what + "; want an address such as https://api.sume.com/v1; http only on loopback"
}

func noConnection(what string) string {
	return "DATABASE_URL: " + what + "; want postgres://USER:PASSWORD@HOST:PORT/NAME, percent-encoded where needed, or host=… dbname=…"
}

func TestLoadPollerReportsAllFaultsAtOnceAndNoSecret(t *testing.T) {
	t.Parallel()
	const secret = "sk_live_abcdefghijklmnopqrstuvwxyz"
	_, err := config.LoadPoller([]string{
		"SUME_API_KEY_SECRET_ID=" + secret + " ", "SUME_API_BASE_URL=https://" + secret + "@api.sume.com", "SUME_API_AUTH_MODE=" + secret,
		"DATABASE_URL=" + secret, "DATABASE_AUTH=" + secret, "DATABASE_PORT=" + secret,
		"POLL_BUDGET=" + secret, "POLL_LEASE=1s", "POLL_CONCURRENCY=-3", "LOG_LEVEL=" + secret,
	})
	var faults config.Faults
	if !errors.As(err, &faults) {
		t.Fatalf("error %v, want config.Faults", err)
	}
	got := map[string]int{}
	for _, fault := range faults {
		got[fault.Name]++
	}
	want := map[string]int{
		"SUME_API_KEY_SECRET_ID": 1, "SUME_API_BASE_URL": 1, "SUME_API_AUTH_MODE": 1,
		"DATABASE_URL": 1, "DATABASE_AUTH": 1, "DATABASE_PORT": 1,
		"POLL_BUDGET": 1, "POLL_LEASE": 1, "POLL_CONCURRENCY": 1, "LOG_LEVEL": 1,
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("faults by variable (-want +got):\n%s", diff)
	}
	if lines := strings.Count(err.Error(), "\n") + 1; lines != len(want) {
		t.Errorf("%d lines, want %d:\n%v", lines, len(want), err)
	}
	if strings.Contains(err.Error(), secret) {
		t.Errorf("a value stands in the error:\n%v", err)
	}
}

func TestBaseURLAlwaysEndsWithItsVersion(t *testing.T) {
	t.Parallel()
	for given, want := range map[string]string{
		"https://api.sume.com":          "https://api.sume.com/v1",
		"https://api.sume.com/":         "https://api.sume.com/v1",
		"https://api.sume.com/v1":       "https://api.sume.com/v1",
		"https://api.sume.com/v1/":      "https://api.sume.com/v1",
		"https://proxy.example/a%20b":   "https://proxy.example/a%20b/v1",
		"http://localhost:9000/v1":      "http://localhost:9000/v1",
		"https://proxy.example/sumev1/": "https://proxy.example/sumev1/v1",
	} {
		cfg, err := config.LoadPoller(append(needed(), "SUME_API_BASE_URL="+given))
		if cfg.Sume.BaseURL != want || err != nil {
			t.Errorf("%s: got %q (error %v), want %q", given, cfg.Sume.BaseURL, err, want)
		}
	}
}

func needed() []string {
	return []string{"SUME_API_KEY_SECRET_ID=sume/key", "DATABASE_URL=postgres://db/app"}
}
