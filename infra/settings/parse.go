package settings

import (
	"fmt"
	"reflect"
	"slices"
	"strings"

	"sumepoller/internal/strictjson"
)

// file is the settings as they are written, where an absent value is not the
// same as a zero or false one.
type file struct {
	Settings
	Database            *databaseFields `json:"database"`
	ReservedConcurrency *int            `json:"reserved_concurrency"`
}

type databaseFields struct {
	Database
	New  *bool `json:"new"`
	Port *int  `json:"port"`
}

// Parse reads and checks the settings. The error is of type Errors.
func Parse(data []byte) (Settings, error) {
	f := file{Settings: Defaults()}
	c := checker{errs: strictjson.UnmarshalAll(data, &f)}
	if len(c.errs) == 1 && c.errs[0].Field == "" {
		return Settings{}, Errors{"the file: " + c.errs[0].Problem + "; want an object as in infra/examples"}
	}
	s := c.settings(f)
	c.sameRegion(s)
	if len(c.errs) == 0 {
		return s, nil
	}
	var lines Errors
	for _, e := range c.errs {
		lines = append(lines, e.Error())
	}
	return Settings{}, lines
}

func (c *checker) settings(f file) Settings {
	s := f.Settings
	c.required("name", s.Name, stackName, "1 to 30 of a-z, 0-9 and single hyphens, a letter first, no hyphen last; pg and pg-… are reserved by PostgreSQL")
	s.Database = c.database(f.Database)
	c.vpc(s)
	c.optional("sume_api_key_secret_arn", s.APIKeySecretARN, secretForm.MatchString, secretWant)
	c.optional("kms_key_arn", s.KMSKeyARN, keyForm.MatchString, keyWant)
	c.optional("migrate", s.Migrate, oneOf(MigrateAuto, MigrateManual), `"auto" or "manual"`)
	c.number("reads_per_minute", s.ReadsPerMinute, 0, 1_000_000, "an integer from 0 to 1000000; 0 sets no limit")
	c.number("reads_per_day", s.ReadsPerDay, 0, 1_000_000_000, "an integer from 0 to 1000000000; 0 sets no limit")
	c.optional("budget", s.Budget, budget, `a duration from 5s to 60s, such as "58s"`)
	c.number("concurrency", s.Concurrency, 1, 1_000, "an integer from 1 to 1000")
	c.number("memory_mib", s.MemoryMiB, 128, 10_240, "an integer from 128 to 10240")
	if n := f.ReservedConcurrency; n != nil {
		s.ReservedConcurrency = *n
		c.number("reserved_concurrency", *n, 4, 1_000, "an integer from 4 to 1000, since ticks and operator requests overlap; without the key nothing is reserved")
	}
	c.optional("alarm_email", s.AlarmEmail, address, "an address such as ops@example.com")
	if !slices.Contains(retentionDays, s.LogRetentionDays) {
		c.add("log_retention_days", fmt.Sprintf("%d is invalid", s.LogRetentionDays), "one of "+strings.Trim(fmt.Sprint(retentionDays), "[]"))
	}
	return s
}

func (c *checker) vpc(s Settings) {
	v := s.VPC
	switch {
	case s.Database.New && v != nil:
		c.add("vpc", "given together with a new database", "none: a new database gets a new network")
		return
	case s.Database.New:
		return
	case v == nil:
		c.add("vpc", "missing", `{"id", "availability_zones", "private_subnet_ids"} of the database's network`)
		return
	}
	c.required("vpc.id", v.ID, idForm("vpc"), "an id such as vpc- and 8 or 17 hexadecimal digits")
	c.list("vpc.availability_zones", v.AvailabilityZones, zoneForm.MatchString, "zones such as eu-central-1a, one for each subnet")
	c.list("vpc.private_subnet_ids", v.PrivateSubnetIDs, idForm("subnet"), "subnets with a route out, such as subnet- and 8 or 17 hexadecimal digits")
	if zones, subnets := len(v.AvailabilityZones), len(v.PrivateSubnetIDs); zones > 0 && subnets > 0 && zones != subnets {
		c.add("vpc.availability_zones", fmt.Sprintf("%d zones for %d subnets", zones, subnets), "the zone of each subnet, in the subnets' order")
	}
}

func (c *checker) database(f *databaseFields) Database {
	if f == nil {
		c.add("database", "missing", `{"new": true}, or an existing one's host, port, name, security_group_id, admin_secret_arn, auth, resource_id, kms_key_arn`)
		return Database{}
	}
	if f.New != nil {
		return c.newDatabase(*f)
	}
	db := f.Database
	db.Port = 5432
	if f.Port != nil {
		db.Port = *f.Port
	}
	c.required("database.host", db.Host, hostForm.MatchString, "the server's host name")
	c.number("database.port", db.Port, 1, 65_535, "an integer from 1 to 65535")
	c.required("database.name", db.Name, databaseForm.MatchString, "the database's name, up to 63 characters, no control characters")
	c.required("database.security_group_id", db.SecurityGroupID, idForm("sg"), "an id such as sg- and 8 or 17 hexadecimal digits")
	c.required("database.admin_secret_arn", db.AdminSecretARN, secretForm.MatchString, secretWant)
	c.required("database.auth", db.Auth, oneOf(AuthIAM, AuthSecret), `"iam" or "secret"`)
	c.optional("database.kms_key_arn", db.KMSKeyARN, keyForm.MatchString, keyWant)
	const resource = "the resource id, db- or cluster- and capital letters and digits"
	switch {
	case db.Auth == AuthSecret && db.ResourceID != "":
		c.add("database.resource_id", `given with auth "secret"`, `none, or auth "iam"`)
	case db.Auth == AuthIAM:
		// Tokens are made for the endpoint's name and the instance's resource id.
		c.required("database.resource_id", db.ResourceID, resourceForm.MatchString, resource)
		c.optional("database.host", db.Host, rdsHost.MatchString, `for auth "iam" the endpoint's name, under rds.amazonaws.com`)
	default:
		c.optional("database.resource_id", db.ResourceID, resourceForm.MatchString, resource)
	}
	return db
}

// newDatabase checks that "new": true is the only key.
func (c *checker) newDatabase(f databaseFields) Database {
	if !*f.New {
		c.add("database.new", "false is invalid", "true, or no such key")
	}
	fields := reflect.ValueOf(f)
	for _, field := range reflect.VisibleFields(fields.Type()) {
		key, _, _ := strings.Cut(field.Tag.Get("json"), ",")
		if key != "" && key != "new" && !fields.FieldByIndex(field.Index).IsZero() {
			c.add("database."+key, `given together with "new"`, "one of them")
		}
	}
	return Database{New: true}
}
