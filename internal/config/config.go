// Package config reads the environment of the functions into values that are
// checked once, at the start. A value that does not parse, lies out of range or
// is missing is reported together with all the others, one line each, and no
// line holds the value of a secret.
package config

import (
	"log/slog"
	"time"
)

// Poller is the configuration of the poller's function.
type Poller struct {
	Sume     Sume
	Reads    Reads
	Database Database
	Poll     Poll
	LogLevel slog.Level `env:"LOG_LEVEL" envDefault:"info"`
}

// Sume tells how the Sume API is reached.
type Sume struct {
	APIKeySecretID string        `env:"SUME_API_KEY_SECRET_ID,required"`                        // Secrets Manager id or ARN
	BaseURL        string        `env:"SUME_API_BASE_URL" envDefault:"https://api.sume.com/v1"` // ends with /v1, without a slash behind it
	AuthMode       string        `env:"SUME_API_AUTH_MODE" envDefault:"bearer"`                 // AuthModeBearer or AuthModeHeader
	RequestTimeout time.Duration `env:"SUME_REQUEST_TIMEOUT" envDefault:"15s"`                  // of one request, from dial to last byte
}

// Reads is the allowance of reads; 0 sets no limit of one's own.
type Reads struct {
	PerMinute int `env:"SUME_READS_PER_MINUTE" envDefault:"120"` // in any 60 s of one sandbox
	PerDay    int `env:"SUME_READS_PER_DAY" envDefault:"10000"`  // of all runs together, UTC day
}

// Database tells how the database is reached. Where URL is set it alone is
// used; else SecretID names a secret that holds the login, with Host, Port and
// Name standing in for what the secret lacks; else Auth is DatabaseAuthIAM and
// Host, Name and User are set.
type Database struct {
	URL      string `env:"DATABASE_URL"` // holds a password: for no log and no error
	SecretID string `env:"DATABASE_SECRET_ID"`
	Host     string `env:"DATABASE_HOST"`
	Port     int    `env:"DATABASE_PORT" envDefault:"5432"`
	Name     string `env:"DATABASE_NAME"`
	User     string `env:"DATABASE_USER"`
	Auth     string `env:"DATABASE_AUTH"`
	MaxConns int    `env:"DATABASE_MAX_CONNS" envDefault:"4"` // connections of one run

	ConnectTimeout time.Duration // of one attempt, where the URL names none; 0: the default; no variable sets it
}

// String returns what says where the database is, never the URL itself.
func (d Database) String() string {
	switch {
	case d.URL != "":
		return DatabaseURL
	case d.SecretID != "":
		return DatabaseSecretID + "=" + d.SecretID
	}
	return d.User + "@" + d.Host + "/" + d.Name
}

// Poll sets the pace of a run.
type Poll struct {
	Budget          time.Duration `env:"POLL_BUDGET" envDefault:"58s"`           // nothing is claimed after it
	Concurrency     int           `env:"POLL_CONCURRENCY" envDefault:"64"`       // reads in flight
	Lease           time.Duration `env:"POLL_LEASE" envDefault:"30s"`            // exceeds Sume.RequestTimeout
	DefaultInterval time.Duration `env:"POLL_DEFAULT_INTERVAL" envDefault:"15s"` // where the answer names none
	MinInterval     time.Duration `env:"POLL_MIN_INTERVAL" envDefault:"1s"`
	MaxInterval     time.Duration `env:"POLL_MAX_INTERVAL" envDefault:"1h"`
	BackoffMax      time.Duration `env:"POLL_BACKOFF_MAX" envDefault:"15m"`
}

// LoadPoller reads the poller's configuration from an environment in the form
// of os.Environ. The error is of type Faults.
func LoadPoller(environ []string) (Poller, error) {
	var cfg Poller
	faults := parse(&cfg, environ)
	faults.sume(&cfg.Sume)
	faults.reads(cfg.Reads)
	faults.database(cfg.Database)
	faults.poll(cfg.Poll, cfg.Sume)
	return cfg, faults.err()
}
