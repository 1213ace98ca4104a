package config

import (
	"log/slog"
	"strings"
	"unicode"
)

// Names of the variables that migrate alone reads. Without the two roles it
// migrates and does nothing else.
const (
	MigratePollerRole     = "MIGRATE_POLLER_ROLE"      // role that the poller logs in with; made where it is missing
	MigrateSubmitRole     = "MIGRATE_SUBMIT_ROLE"      // role that the submitter logs in with
	MigrateRoleAuth       = "MIGRATE_ROLE_AUTH"        // how both log in: RoleAuthIAM or RoleAuthSecret
	MigratePollerSecretID = "MIGRATE_POLLER_SECRET_ID" // secret with the poller's username and password; RoleAuthSecret only
	MigrateSubmitSecretID = "MIGRATE_SUBMIT_SECRET_ID" // secret with the submitter's
)

// Values of MIGRATE_ROLE_AUTH.
const (
	RoleAuthIAM    = "iam"
	RoleAuthSecret = "secret"
)

// Migrate is the configuration of the migrating function. Database is the
// administrator's login.
type Migrate struct {
	Database Database
	Roles    Roles
	BaseURL  string     `env:"SUME_API_BASE_URL" envDefault:"https://api.sume.com/v1"` // whose reach is checked where roles are made
	LogLevel slog.Level `env:"LOG_LEVEL" envDefault:"info"`
}

// Roles are the logins that migrate makes for the other functions; all empty
// where it makes none.
type Roles struct {
	Poller         string `env:"MIGRATE_POLLER_ROLE"`
	Submit         string `env:"MIGRATE_SUBMIT_ROLE"`
	RoleAuth       string `env:"MIGRATE_ROLE_AUTH"`
	PollerSecretID string `env:"MIGRATE_POLLER_SECRET_ID"`
	SubmitSecretID string `env:"MIGRATE_SUBMIT_SECRET_ID"`
}

// LoadMigrate reads the migrating function's configuration from an environment
// in the form of os.Environ. The error is of type Faults.
func LoadMigrate(environ []string) (Migrate, error) {
	var cfg Migrate
	faults := parse(&cfg, environ)
	faults.database(cfg.Database)
	faults.roles(cfg.Roles)
	if base, what := baseURL(cfg.BaseURL); what != "" {
		faults.add(APIBaseURL, what, "an address such as https://api.sume.com/v1; http only on loopback")
	} else {
		cfg.BaseURL = base
	}
	return cfg, faults.err()
}

func (f *Faults) roles(r Roles) {
	if r == (Roles{}) {
		return
	}
	f.role(MigratePollerRole, r.Poller)
	f.role(MigrateSubmitRole, r.Submit)
	if r.Poller == r.Submit {
		f.add(MigrateSubmitRole, "is the same as "+MigratePollerRole, "a role of its own, since each may do what it needs and no more")
	}
	switch r.RoleAuth {
	case RoleAuthIAM:
		for name, value := range map[string]string{MigratePollerSecretID: r.PollerSecretID, MigrateSubmitSecretID: r.SubmitSecretID} {
			if value != "" {
				f.add(name, "is set beside "+MigrateRoleAuth+"="+RoleAuthIAM, "one of the two, since a role that logs in with IAM has no password")
			}
		}
	case RoleAuthSecret:
		f.needed(MigratePollerSecretID, r.PollerSecretID, "the id or ARN of the secret that holds the poller's login")
		f.needed(MigrateSubmitSecretID, r.SubmitSecretID, "the id or ARN of the secret that holds the submitter's login")
	case "":
		f.needed(MigrateRoleAuth, "", RoleAuthIAM+" or "+RoleAuthSecret)
	default:
		f.add(MigrateRoleAuth, shown(r.RoleAuth)+" is unknown", RoleAuthIAM+" or "+RoleAuthSecret)
	}
}

// longestRole is what PostgreSQL keeps of a name, in bytes.
const longestRole = 63

func (f *Faults) role(name, role string) {
	const want = "the name of a role, at most 63 bytes long"
	switch {
	case role == "":
		f.needed(name, role, want)
	case len(role) > longestRole:
		f.add(name, "is too long", want)
	case strings.ContainsFunc(role, unicode.IsControl):
		f.add(name, "holds control characters", want)
	case strings.HasPrefix(role, "pg_"):
		f.add(name, "begins with pg_, which PostgreSQL keeps for itself", want)
	}
}
