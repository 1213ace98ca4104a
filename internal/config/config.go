// Package config reads the environment of the functions into values that are
// checked once, at the start. It reports every variable that is missing, does
// not parse or is out of range, all at once and one line each. No line holds
// the value of a secret.
package config

import (
	"log/slog"
	"time"

	"github.com/caarlos0/env/v11"
)

// Poller is the configuration of the poller.
type Poller struct {
	Sume     Sume
	Reads    Reads
	Database Database
	Poll     Poll
	Log
}

// Submit is the configuration of the submitter.
type Submit struct {
	Sume     Sume
	Database Database
	Log
}

// Log is the part that every function has.
type Log struct {
	LogLevel slog.Level `env:"LOG_LEVEL" envDefault:"info"`
}

// API is the address of the Sume API.
type API struct {
	BaseURL string `env:"SUME_API_BASE_URL" envDefault:"https://api.sume.com/v1"` // ends with /v1
}

// Sume says how to reach the Sume API.
type Sume struct {
	API
	APIKeySecretID string        `env:"SUME_API_KEY_SECRET_ID,required"`        // Secrets Manager id or ARN
	AuthMode       string        `env:"SUME_API_AUTH_MODE" envDefault:"bearer"` // a key of authModes
	RequestTimeout time.Duration `env:"SUME_REQUEST_TIMEOUT" envDefault:"15s"`  // of one request, from dial to last byte
}

// KeyHeader returns the header line that carries the API key, up to the key.
func (s Sume) KeyHeader() string { return authModes[s.AuthMode] }

// Reads are the limits on reads; 0 means none.
type Reads struct {
	PerMinute int `env:"SUME_READS_PER_MINUTE" envDefault:"120"` // in any 60 s of one sandbox
	PerDay    int `env:"SUME_READS_PER_DAY" envDefault:"10000"`  // of all runs together, UTC day
}

// Database says how to reach the database. If URL is set, the other fields but
// MaxConns are ignored. Otherwise, if SecretID is set, that secret has the
// login, and Host, Port and Name fill in what it does not have. Otherwise Auth
// is DatabaseAuthIAM, and Host, Name and User are set.
type Database struct {
	URL      string `env:"DATABASE_URL"` // holds a password: for no log and no error
	SecretID string `env:"DATABASE_SECRET_ID"`
	Host     string `env:"DATABASE_HOST"`
	Port     int    `env:"DATABASE_PORT" envDefault:"5432"`
	Name     string `env:"DATABASE_NAME"`
	User     string `env:"DATABASE_USER"`
	Auth     string `env:"DATABASE_AUTH"`
	MaxConns int    `env:"DATABASE_MAX_CONNS" envDefault:"4"` // connections of one run

	// ConnectTimeout bounds one attempt to connect, unless URL does. 0 means the
	// default. No variable sets it.
	ConnectTimeout time.Duration
}

// String says where the database is, without the URL.
func (d Database) String() string {
	switch {
	case d.URL != "":
		return DatabaseURL
	case d.SecretID != "":
		return DatabaseSecretID + "=" + d.SecretID
	}
	return d.User + "@" + d.Host + "/" + d.Name
}

// Poll holds the settings of a run.
type Poll struct {
	Budget          time.Duration `env:"POLL_BUDGET" envDefault:"58s"`           // nothing is claimed after it
	Concurrency     int           `env:"POLL_CONCURRENCY" envDefault:"64"`       // reads in flight
	Lease           time.Duration `env:"POLL_LEASE" envDefault:"30s"`            // exceeds Sume.RequestTimeout
	DefaultInterval time.Duration `env:"POLL_DEFAULT_INTERVAL" envDefault:"15s"` // if the answer asks for none
	MinInterval     time.Duration `env:"POLL_MIN_INTERVAL" envDefault:"1s"`
	MaxInterval     time.Duration `env:"POLL_MAX_INTERVAL" envDefault:"1h"`
	BackoffMax      time.Duration `env:"POLL_BACKOFF_MAX" envDefault:"15m"`
}

// LoadPoller reads the poller's configuration from an environment in the form
// of os.Environ. The error is of type Errors.
func LoadPoller(environ []string) (Poller, error) {
	var cfg Poller
	errs := parse(&cfg, environ)
	errs.sume(&cfg.Sume)
	errs.reads(cfg.Reads)
	errs.database(cfg.Database)
	errs.poll(cfg.Poll, cfg.Sume)
	return cfg, errs.orNil()
}

// LoadSubmit reads the submitter's configuration, as LoadPoller does.
func LoadSubmit(environ []string) (Submit, error) {
	var cfg Submit
	errs := parse(&cfg, environ)
	errs.sume(&cfg.Sume)
	errs.database(cfg.Database)
	return cfg, errs.orNil()
}

// Defaults returns the poller's configuration where no variable is set.
func Defaults() Poller {
	var cfg Poller
	_ = env.ParseWithOptions(&cfg, env.Options{Environment: map[string]string{}}) // only the missing secret id
	return cfg
}
