package config

import "log/slog"

// Submit is the configuration of the submitter's function.
type Submit struct {
	Sume     Sume
	Database Database
	LogLevel slog.Level `env:"LOG_LEVEL" envDefault:"info"`
}

// LoadSubmit reads the submitter's configuration from an environment in the
// form of os.Environ. The error is of type Faults.
func LoadSubmit(environ []string) (Submit, error) {
	var cfg Submit
	faults := parse(&cfg, environ)
	faults.sume(&cfg.Sume)
	faults.database(cfg.Database)
	return cfg, faults.err()
}
