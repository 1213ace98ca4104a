package config

import (
	"strings"
	"unicode"
)

// Migrate is the configuration of the migrating function. Database is the
// administrator's login.
type Migrate struct {
	Database Database
	Roles    Roles
	API      // its reach is checked where roles are made
	Log
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
// in the form of os.Environ. The error is of type Errors.
func LoadMigrate(environ []string) (Migrate, error) {
	var cfg Migrate
	errs := parse(&cfg, environ)
	errs.database(cfg.Database)
	errs.roles(cfg.Roles)
	errs.api(&cfg.API)
	return cfg, errs.orNil()
}

func (e *Errors) roles(r Roles) {
	if r == (Roles{}) {
		return
	}
	e.role(MigratePollerRole, r.Poller)
	e.role(MigrateSubmitRole, r.Submit)
	if r.Poller == r.Submit {
		e.add(MigrateSubmitRole, "is the same as "+MigratePollerRole, "another role, since each function has only the rights that it needs")
	}
	switch r.RoleAuth {
	case RoleAuthIAM:
		for name, value := range map[string]string{MigratePollerSecretID: r.PollerSecretID, MigrateSubmitSecretID: r.SubmitSecretID} {
			if value != "" {
				e.add(name, "is set beside "+MigrateRoleAuth+"="+RoleAuthIAM, "one of the two, since a role that logs in with IAM has no password")
			}
		}
	case RoleAuthSecret:
		e.needed(MigratePollerSecretID, r.PollerSecretID, "the id or ARN of the secret that holds the poller's login")
		e.needed(MigrateSubmitSecretID, r.SubmitSecretID, "the id or ARN of the secret that holds the submitter's login")
	case "":
		e.needed(MigrateRoleAuth, "", RoleAuthIAM+" or "+RoleAuthSecret)
	default:
		e.add(MigrateRoleAuth, shown(r.RoleAuth)+" is unknown", RoleAuthIAM+" or "+RoleAuthSecret)
	}
}

// longestRole is what PostgreSQL keeps of a name, in bytes.
const longestRole = 63

func (e *Errors) role(name, role string) {
	const want = "the name of a role, at most 63 bytes long"
	switch {
	case role == "":
		e.needed(name, role, want)
	case len(role) > longestRole:
		e.add(name, "is too long", want)
	case strings.ContainsFunc(role, unicode.IsControl):
		e.add(name, "holds control characters", want)
	case strings.HasPrefix(role, "pg_"):
		e.add(name, "begins with pg_, which PostgreSQL keeps for itself", want)
	}
}
