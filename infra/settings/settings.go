// Package settings reads the file that says where a stack is deployed and how it
// behaves. The file is committed, so that a forgotten flag can never point the
// functions at another database. It holds no secret. Every key that is unknown,
// missing, of another type or out of range is reported, all at once, one line
// each.
//
// The package does not use the CDK. The stack and infra/configure both use it.
package settings

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strings"
)

// Path is the settings file unless the caller names another.
const Path = "infra/settings.json"

// Values of Settings.Migrate.
const (
	MigrateAuto   = "auto"   // at deploy, when the migrations or their configuration change
	MigrateManual = "manual" // by hand, with the SQL of `make schema`
)

// Values of Database.Auth.
const (
	AuthIAM    = "iam"    // a token for each connection
	AuthSecret = "secret" // passwords in secrets that the stack makes
)

// Settings describe one stack. Parse sets the defaults.
type Settings struct {
	Name                string   `json:"name"`                              // of the stack; also begins the names of functions and roles
	VPC                 *VPC     `json:"vpc,omitempty"`                     // nil where Database.New
	Database            Database `json:"database"`                          //
	APIKeySecretARN     string   `json:"sume_api_key_secret_arn,omitempty"` // empty: the stack makes one
	KMSKeyARN           string   `json:"kms_key_arn,omitempty"`             // of the API key's secret and of those the stack makes; empty: AWS's key
	Migrate             string   `json:"migrate,omitempty"`                 // MigrateAuto or MigrateManual
	ReadsPerMinute      int      `json:"reads_per_minute,omitempty"`        // 0: no limit
	ReadsPerDay         int      `json:"reads_per_day,omitempty"`           // 0: no limit
	Budget              string   `json:"budget,omitempty"`                  // a duration such as 58s
	Concurrency         int      `json:"concurrency,omitempty"`             // reads in flight
	MemoryMiB           int      `json:"memory_mib,omitempty"`              // of the poller
	ReservedConcurrency int      `json:"reserved_concurrency,omitempty"`    // 0: nothing is reserved
	AlarmEmail          string   `json:"alarm_email,omitempty"`             // empty: nobody is subscribed
	LogRetentionDays    int      `json:"log_retention_days,omitempty"`      // one that CloudWatch accepts
}

// VPC is an existing network. Zones and subnets have the same order, one zone
// for each subnet.
type VPC struct {
	ID                string   `json:"id"`
	AvailabilityZones []string `json:"availability_zones"`
	PrivateSubnetIDs  []string `json:"private_subnet_ids"` // with a route to the internet
}

// Database is an existing one. If New is set, the stack makes one, and every
// other field is empty.
type Database struct {
	New             bool   `json:"new,omitempty"`
	Host            string `json:"host,omitempty"`
	Port            int    `json:"port,omitempty"`
	Name            string `json:"name,omitempty"`
	SecurityGroupID string `json:"security_group_id,omitempty"`
	AdminSecretARN  string `json:"admin_secret_arn,omitempty"` // read by migrate only
	Auth            string `json:"auth,omitempty"`             // AuthIAM or AuthSecret
	ResourceID      string `json:"resource_id,omitempty"`      // AuthIAM only
	KMSKeyARN       string `json:"kms_key_arn,omitempty"`      // of the admin's secret; empty: AWS's key
}

// Defaults returns the values of the keys that a file may omit.
func Defaults() Settings {
	return Settings{
		Migrate:        MigrateAuto,
		ReadsPerMinute: 120, ReadsPerDay: 10_000,
		Budget: "58s", Concurrency: 64, MemoryMiB: 256,
		LogRetentionDays: 30,
	}
}

// Load reads a settings file. Each line of the error names the file. If the file
// is missing, the error is one line that says how to make one.
func Load(path string) (Settings, error) {
	data, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return Settings{}, fmt.Errorf("%s: no such file; copy infra/examples/existing.json or infra/examples/new-database.json to it, "+
			"or write it with `make configure DB=<identifier>`", path)
	}
	if err != nil {
		return Settings{}, fmt.Errorf("read settings: %w", err)
	}
	s, err := Parse(data)
	var lines Errors
	if errors.As(err, &lines) {
		for i := range lines {
			lines[i] = path + ": " + lines[i]
		}
		return s, lines
	}
	return s, err
}

// Errors are the errors of a settings file, one line each.
type Errors []string

// Error returns the lines.
func (e Errors) Error() string { return strings.Join(e, "\n") }
