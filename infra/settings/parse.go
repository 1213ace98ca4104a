package settings

import (
	"fmt"
	"net/mail"
	"regexp"
	"slices"
	"strings"
	"time"
)

// Parse reads and checks the settings. The error is of type Faults.
func Parse(data []byte) (Settings, error) {
	var r reader
	top := r.top(data)
	if top.values == nil {
		return Settings{}, r.faults
	}
	s := top.settings()
	r.sameRegion(s)
	if len(r.faults) > 0 {
		return Settings{}, r.faults
	}
	return s, nil
}

func (o object) settings() Settings {
	s := Defaults()
	s.Name = o.text("name", true, stackName, "1 to 30 of a-z, 0-9 and single hyphens, a letter first, no hyphen last; pg and pg-… begin roles of PostgreSQL's own")
	s.Database = o.database()
	s.VPC = o.vpc(s.Database.New)
	s.APIKeySecretARN = o.text("sume_api_key_secret_arn", false, matches(secretForm), secretWant)
	s.KMSKeyARN = o.text("kms_key_arn", false, matches(keyForm), keyWant)
	if text := o.text("migrate", false, oneOf(MigrateAuto, MigrateManual), `"auto" or "manual"`); text != "" {
		s.Migrate = text
	}
	s.ReadsPerMinute = o.number("reads_per_minute", s.ReadsPerMinute, between(0, 1_000_000), "a whole number; 0 sets no limit")
	s.ReadsPerDay = o.number("reads_per_day", s.ReadsPerDay, between(0, 1_000_000_000), "a whole number; 0 sets no limit")
	if text := o.text("budget", false, budget, `a duration from 5s to 60s, such as "58s"`); text != "" {
		s.Budget = text
	}
	s.Concurrency = o.number("concurrency", s.Concurrency, between(1, 1_000), "a whole number from 1 to 1000")
	s.MemoryMiB = o.number("memory_mib", s.MemoryMiB, between(128, 10_240), "a whole number from 128 to 10240")
	s.ReservedConcurrency = o.number("reserved_concurrency", 0, between(4, 1_000),
		"at least 4, since ticks and runs by hand overlap; without the key nothing is reserved")
	s.AlarmEmail = o.text("alarm_email", false, address, "an address such as ops@example.com")
	s.LogRetentionDays = o.number("log_retention_days", s.LogRetentionDays, retention, "one of "+retentions())
	o.rest("a key of the README's table")
	return s
}

func (o object) vpc(made bool) *VPC {
	if _, given := o.values["vpc"]; made {
		if given {
			o.add(o.path+"vpc", "given beside a new database", "none: the database brings its network")
			delete(o.values, "vpc")
		}
		return nil
	}
	const want = `{"id", "availability_zones", "private_subnet_ids"} of the database's network`
	if _, given := o.values["vpc"]; !given {
		o.add(o.path+"vpc", "missing", want)
		return nil
	}
	v, ok := o.child("vpc", want)
	if !ok {
		return nil
	}
	vpc := &VPC{
		ID:                v.text("id", true, matches(idForm("vpc")), "an id such as vpc- and 8 or 17 hexadecimal digits"),
		AvailabilityZones: v.list("availability_zones", matches(zoneForm), "zones such as eu-central-1a, one for each subnet"),
		PrivateSubnetIDs:  v.list("private_subnet_ids", matches(idForm("subnet")), "subnets that have a way out, such as subnet- and 8 or 17 hexadecimal digits"),
	}
	if zones, subnets := len(vpc.AvailabilityZones), len(vpc.PrivateSubnetIDs); zones > 0 && subnets > 0 && zones != subnets {
		o.add(v.path+"availability_zones", fmt.Sprintf("%d zones for %d subnets", zones, subnets), "the zone of each subnet, in the subnets' order")
	}
	v.rest("id, availability_zones, private_subnet_ids")
	return vpc
}

func (o object) database() Database {
	const keys = "host, port, name, security_group_id, admin_secret_arn, auth, resource_id, kms_key_arn"
	const want = `{"new": true}, or an existing one's ` + keys
	if _, given := o.values["database"]; !given {
		o.add(o.path+"database", "missing", want)
		return Database{}
	}
	d, ok := o.child("database", want)
	if !ok {
		return Database{}
	}
	if value, given := d.take("new"); given {
		if value != true {
			o.add(d.path+"new", shown(value)+" will not do", "true, or no such key")
		}
		d.rest(`nothing beside "new"`)
		return Database{New: true}
	}
	db := Database{
		Host:            d.text("host", true, matches(hostForm), "the server's host name"),
		Port:            d.number("port", 5432, between(1, 65_535), "a whole number from 1 to 65535"),
		Name:            d.text("name", true, matches(databaseForm), "the database's name, up to 63 characters, no control characters"),
		SecurityGroupID: d.text("security_group_id", true, matches(idForm("sg")), "an id such as sg- and 8 or 17 hexadecimal digits"),
		AdminSecretARN:  d.text("admin_secret_arn", true, matches(secretForm), secretWant),
		Auth:            d.text("auth", true, oneOf(AuthIAM, AuthSecret), `"iam" or "secret"`),
		KMSKeyARN:       d.text("kms_key_arn", false, matches(keyForm), keyWant),
	}
	d.login(&db)
	d.rest(keys)
	return db
}

// login reads what the kind of login needs. Tokens are made for an endpoint's
// own name and an instance's resource id; under another name they are refused.
func (o object) login(db *Database) {
	if _, given := o.values["resource_id"]; given && db.Auth == AuthSecret {
		o.add(o.path+"resource_id", `given with auth "secret"`, `none, or auth "iam"`)
		delete(o.values, "resource_id")
		return
	}
	db.ResourceID = o.text("resource_id", db.Auth == AuthIAM, matches(resourceForm), "the resource id, db- or cluster- and capital letters and digits")
	if db.Auth == AuthIAM && db.Host != "" && !rdsHost.MatchString(db.Host) {
		o.add(o.path+"host", shown(db.Host)+` cannot log in with auth "iam"`, "the endpoint's own name, under rds.amazonaws.com")
	}
}

const (
	secretWant = "a secret's full ARN, with the six characters at its end"
	keyWant    = "a key's ARN, arn:aws:kms:…:key/…; an alias will not do"
)

var (
	nameForm     = regexp.MustCompile(`^[a-z][a-z0-9]*(-[a-z0-9]+)*$`)
	zoneForm     = regexp.MustCompile(`^[a-z]{2}(-[a-z]+)+-\d[a-z-0-9]*[a-z]$`)
	hostForm     = regexp.MustCompile(`^[A-Za-z0-9]([A-Za-z0-9.-]{0,251}[A-Za-z0-9])?$`)
	rdsHost      = regexp.MustCompile(`\.rds\.amazonaws\.com(\.cn)?$`)
	databaseForm = regexp.MustCompile(`^[^\x00-\x1f\x7f]{1,63}$`)
	resourceForm = regexp.MustCompile(`^(db|cluster|prx)-[A-Za-z0-9]+$`)
	secretForm   = regexp.MustCompile(`^arn:aws[a-z-]*:secretsmanager:[a-z0-9-]+:\d{12}:secret:[A-Za-z0-9/_+=.@!-]+-[A-Za-z0-9]{6}$`)
	keyForm      = regexp.MustCompile(`^arn:aws[a-z-]*:kms:[a-z0-9-]+:\d{12}:key/[A-Za-z0-9-]+$`)
)

func idForm(kind string) *regexp.Regexp {
	return regexp.MustCompile(`^` + kind + `-([0-9a-f]{8}|[0-9a-f]{17})$`)
}

func matches(form *regexp.Regexp) func(string) bool { return form.MatchString }

// stackName accepts what functions, alarms and database roles can begin with. A
// role that begins with pg_ is refused by PostgreSQL.
func stackName(name string) bool {
	return len(name) <= 30 && nameForm.MatchString(name) && !strings.HasPrefix(name+"-", "pg-")
}

func oneOf(words ...string) func(string) bool {
	return func(s string) bool { return slices.Contains(words, s) }
}

func between(least, most int) func(int) bool {
	return func(n int) bool { return n >= least && n <= most }
}

func budget(text string) bool {
	d, err := time.ParseDuration(text)
	return err == nil && d >= 5*time.Second && d <= time.Minute
}

func address(text string) bool {
	a, err := mail.ParseAddress(text)
	return err == nil && a.Address == text && strings.Contains(text, ".")
}
