// Package settings reads the file that says where a stack stands and how it
// behaves. The file is committed, so that no forgotten flag can ever point the
// functions at another database; it holds no secret. It is read strictly: a
// key that is unknown, half-given, of another type or out of range is
// reported, all of them at once, one line each.
//
// The package knows nothing of the CDK; the stack and the configurator both
// use it.
package settings

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strings"
)

// Path is where the settings lie unless the caller names another file.
const Path = "infra/settings.json"

// Values of Settings.Migrate.
const (
	MigrateAuto   = "auto"   // at deploy, when the migrations or their configuration change
	MigrateManual = "manual" // by hand, with the SQL of `make schema`
)

// Values of Database.Auth.
const (
	AuthIAM    = "iam"    // tokens, made for each connection
	AuthSecret = "secret" // passwords in secrets that the stack makes
)

// Settings describe one stack. Parse fills in the defaults, so that a value
// here is always the one to use.
type Settings struct {
	Name                string   `json:"name"`                              // of the stack; also begins the names of functions and roles
	VPC                 *VPC     `json:"vpc,omitempty"`                     // nil where Database.New
	Database            Database `json:"database"`                          //
	APIKeySecretARN     string   `json:"sume_api_key_secret_arn,omitempty"` // empty: the stack makes one
	KMSKeyARN           string   `json:"kms_key_arn,omitempty"`             // of the API key's secret and of those the stack makes; empty: AWS's own
	Migrate             string   `json:"migrate,omitempty"`                 // MigrateAuto or MigrateManual
	ReadsPerMinute      int      `json:"reads_per_minute,omitempty"`        // 0: no limit of one's own
	ReadsPerDay         int      `json:"reads_per_day,omitempty"`           // 0: no limit of one's own
	Budget              string   `json:"budget,omitempty"`                  // a duration as Go writes it
	Concurrency         int      `json:"concurrency,omitempty"`             // reads in flight
	MemoryMiB           int      `json:"memory_mib,omitempty"`              // of the poller
	ReservedConcurrency int      `json:"reserved_concurrency,omitempty"`    // 0: nothing is reserved
	AlarmEmail          string   `json:"alarm_email,omitempty"`             // empty: nobody is subscribed
	LogRetentionDays    int      `json:"log_retention_days,omitempty"`      // one that CloudWatch knows
}

// VPC is the network that exists. Zones and subnets stand in the same order,
// one zone for each subnet.
type VPC struct {
	ID                string   `json:"id"`
	AvailabilityZones []string `json:"availability_zones"`
	PrivateSubnetIDs  []string `json:"private_subnet_ids"` // with a way out to the internet
}

// Database is the one that exists or, where New, one that the stack makes; then
// every other field is empty.
type Database struct {
	New             bool   `json:"new,omitempty"`
	Host            string `json:"host,omitempty"`
	Port            int    `json:"port,omitempty"`
	Name            string `json:"name,omitempty"`
	SecurityGroupID string `json:"security_group_id,omitempty"`
	AdminSecretARN  string `json:"admin_secret_arn,omitempty"` // read by migrate alone
	Auth            string `json:"auth,omitempty"`             // AuthIAM or AuthSecret
	ResourceID      string `json:"resource_id,omitempty"`      // AuthIAM only
	KMSKeyARN       string `json:"kms_key_arn,omitempty"`      // of the admin's secret; empty: AWS's own
}

// Defaults are the settings that a file need not name.
func Defaults() Settings {
	return Settings{
		Migrate:        MigrateAuto,
		ReadsPerMinute: 120, ReadsPerDay: 10_000,
		Budget: "58s", Concurrency: 64, MemoryMiB: 256,
		LogRetentionDays: 30,
	}
}

// Load reads the settings of a file. The error names the file in each of its
// lines; a file that is missing is one line that says how to get one.
func Load(path string) (Settings, error) {
	data, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return Settings{}, fmt.Errorf("%s: no such file; copy infra/examples/existing.json or infra/examples/new-database.json there, "+
			"or write it with `make configure DB=<identifier>`", path)
	}
	if err != nil {
		return Settings{}, fmt.Errorf("read settings: %w", err)
	}
	s, err := Parse(data)
	var faults Faults
	if errors.As(err, &faults) {
		for i := range faults {
			faults[i] = path + ": " + faults[i]
		}
		return s, faults
	}
	return s, err
}

// Faults are all that is wrong with the settings, one line each.
type Faults []string

// Error returns the lines.
func (f Faults) Error() string { return strings.Join(f, "\n") }
