package settings_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"sumepoller/infra/settings"
)

const (
	existing    = "../examples/existing.json"
	newDatabase = "../examples/new-database.json"
)

// edited returns the existing example, changed.
func edited(t *testing.T, change func(file, vpc, db map[string]any)) []byte {
	t.Helper()
	data, err := os.ReadFile(existing)
	if err != nil {
		t.Fatal(err)
	}
	var file map[string]any
	if err := json.Unmarshal(data, &file); err != nil {
		t.Fatal(err)
	}
	change(file, file["vpc"].(map[string]any), file["database"].(map[string]any))
	if data, err = json.Marshal(file); err != nil {
		t.Fatal(err)
	}
	return data
}

func TestLoad_Examples(t *testing.T) {
	t.Parallel()
	got, err := settings.Load(newDatabase)
	if err != nil {
		t.Fatal(err)
	}
	want := settings.Defaults() // docs/configuration.md has the same
	want.Name, want.Database.New = "sume-poller", true
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	got, err = settings.Load(existing)
	if err != nil {
		t.Fatal(err)
	}
	if got.VPC == nil || got.Database.Auth != settings.AuthIAM || got.Database.Host == "" || got.Database.New {
		t.Errorf("got %+v", got)
	}
	if got, want := got.Place(), (settings.Place{Partition: "aws", Region: "eu-central-1", Account: "111122223333"}); got != want {
		t.Errorf("got %+v, want %+v", got, want)
	}
}

func TestLoad_NoFile(t *testing.T) {
	t.Parallel()
	_, err := settings.Load(filepath.Join(t.TempDir(), "settings.json"))
	if err == nil {
		t.Fatal("got no error")
	}
	for _, want := range []string{existing[len("../"):], newDatabase[len("../"):]} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("got %q, want %q in it", err, want)
		}
	}
	if strings.Contains(err.Error(), "\n") {
		t.Errorf("got %q, want one line", err)
	}
}

func TestLoad_LinesNameTheFile(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "mine.json")
	if err := os.WriteFile(path, []byte(`{"name": "X", "database": {"new": true}, "colour": 1}`), 0o600); err != nil {
		t.Fatal(err)
	}
	_, err := settings.Load(path)
	if err == nil {
		t.Fatal("got no error")
	}
	lines := strings.Split(err.Error(), "\n")
	if len(lines) != 2 {
		t.Errorf("got %d lines, want 2: %q", len(lines), lines)
	}
	for _, line := range lines {
		if !strings.HasPrefix(line, path+": ") {
			t.Errorf("got %q, want it to begin with the path", line)
		}
	}
}

func TestParse_AllErrorsAtOnce(t *testing.T) {
	t.Parallel()
	_, err := settings.Parse([]byte(`{
		"colour": "x", "vpc": {"id": "vpc-1", "private_subnet_ids": []},
		"database": {"host": "db.internal", "port": "5432", "auth": "iam", "user": "admin", "security_group_id": null},
		"migrate": "never", "budget": "2m", "reserved_concurrency": 3, "log_retention_days": 31, "memory_mib": 256.5
	}`))
	if err == nil {
		t.Fatal("got no error")
	}
	var got []string
	for line := range strings.Lines(err.Error()) {
		key, _, _ := strings.Cut(line, ":")
		got = append(got, key)
	}
	want := []string{
		"name", "database.name", "database.security_group_id", "database.admin_secret_arn", "database.port", "database.resource_id",
		"database.host", "database.user", "vpc.id", "vpc.availability_zones", "vpc.private_subnet_ids",
		"migrate", "budget", "memory_mib", "reserved_concurrency", "log_retention_days", "colour",
	}
	sorted := cmp.Transformer("set", func(keys []string) map[string]bool {
		set := map[string]bool{}
		for _, key := range keys {
			set[key] = true
		}
		return set
	})
	if diff := cmp.Diff(want, got, sorted); diff != "" {
		t.Errorf("%s\n%s", diff, err)
	}
}

func TestParse_OneError(t *testing.T) {
	t.Parallel()
	set := func(key string, value any) func(_, _, db map[string]any) {
		return func(file, vpc, db map[string]any) {
			at := file
			switch prefix, rest, _ := strings.Cut(key, "."); prefix {
			case "vpc":
				at, key = vpc, rest
			case "database":
				at, key = db, rest
			}
			if value == nil {
				delete(at, key)
				return
			}
			at[key] = value
		}
	}
	for name, test := range map[string]struct {
		key    string
		change func(file, vpc, db map[string]any)
	}{
		"no name":                     {"name", set("name", nil)},
		"name invalid for a role":     {"name", set("name", "Sume Poller")},
		"name of 31 characters":       {"name", set("name", strings.Repeat("a", 31))},
		"name that begins with pg-":   {"name", set("name", "pg-jobs")},
		"name pg":                     {"name", set("name", "pg")},
		"no database":                 {"database", func(file, _, _ map[string]any) { delete(file, "database") }},
		"no vpc":                      {"vpc", func(file, _, _ map[string]any) { delete(file, "vpc") }},
		"unknown key":                 {"region", set("region", "eu-central-1")},
		"unknown key of the vpc":      {"vpc.cidr", set("vpc.cidr", "10.0.0.0/8")},
		"unknown key of the database": {"database.password", set("database.password", "x")},
		"one zone for two subnets":    {"vpc.availability_zones", set("vpc.availability_zones", []string{"eu-central-1a"})},
		"zones of another region":     {"vpc.availability_zones", set("vpc.availability_zones", []string{"eu-west-1a", "eu-west-1b"})},
		"database without its secret": {"database.admin_secret_arn", set("database.admin_secret_arn", nil)},
		"secret without its suffix":   {"database.admin_secret_arn", set("database.admin_secret_arn", "arn:aws:secretsmanager:eu-central-1:111122223333:secret:db")},
		"iam without a resource id":   {"database.resource_id", set("database.resource_id", nil)},
		"iam with another host name":  {"database.host", set("database.host", "db.example.com")},
		"secret with a resource id":   {"database.resource_id", set("database.auth", "secret")},
		"alias instead of a key":      {"kms_key_arn", set("kms_key_arn", "arn:aws:kms:eu-central-1:111122223333:alias/mine")},
		"key of another region":       {"kms_key_arn", set("kms_key_arn", "arn:aws:kms:eu-west-1:111122223333:key/00000000-0000-4000-8000-000000000000")},
		"database is an array":        {"database", func(file, _, _ map[string]any) { file["database"] = []any{} }},
		"new beside a host": {"database.host", func(file, _, _ map[string]any) {
			file["database"] = map[string]any{"new": true, "host": "a"}
			delete(file, "vpc")
		}},
		"new is false":                {"database.new", func(file, _, _ map[string]any) { file["database"] = map[string]any{"new": false}; delete(file, "vpc") }},
		"vpc beside a new database":   {"vpc", func(file, _, _ map[string]any) { file["database"] = map[string]any{"new": true} }},
		"reserved_concurrency 3":      {"reserved_concurrency", set("reserved_concurrency", 3)},
		"reserved_concurrency 0":      {"reserved_concurrency", set("reserved_concurrency", 0)},
		"reads are a string":          {"reads_per_day", set("reads_per_day", "10000")},
		"reads are negative":          {"reads_per_minute", set("reads_per_minute", -1)},
		"budget over a minute":        {"budget", set("budget", "61s")},
		"retention not in CloudWatch": {"log_retention_days", set("log_retention_days", 31)},
		"email is empty":              {"alarm_email", set("alarm_email", "")},
		"port 0":                      {"database.port", set("database.port", 0)},
		"fraction":                    {"memory_mib", set("memory_mib", 256.5)},
		"too many reads":              {"reads_per_day", set("reads_per_day", 1e21)},
		"empty zone":                  {"vpc.availability_zones[1]", set("vpc.availability_zones", []string{"eu-central-1a", ""})},
		"no zones":                    {"vpc.availability_zones", set("vpc.availability_zones", []string{})},
		"invalid migrate":             {"migrate", set("migrate", "never")},
		"email without a domain":      {"alarm_email", set("alarm_email", "ops")},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, err := settings.Parse(edited(t, test.change))
			if err == nil {
				t.Fatal("got no error")
			}
			if strings.Contains(err.Error(), "\n") || !strings.HasPrefix(err.Error(), test.key+": ") || !strings.Contains(err.Error(), "want ") {
				t.Errorf("got %q, want one line about %s", err, test.key)
			}
		})
	}
}

func TestParse_NotAnObject(t *testing.T) {
	t.Parallel()
	for name, text := range map[string]string{
		"empty": "", "cut off": `{"name": "x"`, "array": `[]`, "null": `null`, "two objects": `{} {}`, "comment": "// x\n{}",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if _, err := settings.Parse([]byte(text)); err == nil || strings.Contains(err.Error(), "\n") {
				t.Errorf("got %v, want one line", err)
			}
		})
	}
}

func TestParse_KeyGivenTwice(t *testing.T) {
	t.Parallel()
	_, err := settings.Parse([]byte(`{"name": "a", "name": "b", "database": {"new": true, "new": true}}`))
	if err == nil || !strings.Contains(err.Error(), "name: given twice") || !strings.Contains(err.Error(), "database.new: given twice") {
		t.Errorf("got %v", err)
	}
}

func TestParse_ZeroReads(t *testing.T) {
	t.Parallel()
	got, err := settings.Parse(edited(t, func(file, _, _ map[string]any) { file["reads_per_minute"], file["reads_per_day"] = 0, 0 }))
	if err != nil || got.ReadsPerMinute != 0 || got.ReadsPerDay != 0 {
		t.Errorf("got %d and %d, %v", got.ReadsPerMinute, got.ReadsPerDay, err)
	}
}

// The CDK and its documentation use such ids where a look-up is missing.
func TestExamples_NoPlaceholders(t *testing.T) {
	t.Parallel()
	for _, path := range []string{existing, newDatabase} {
		data, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		for _, id := range []string{"vpc-12345", "s-12345", "p-12345", "subnet-12345", "sg-12345", "dummy1", "123456789012", "12345678", "rtb-", "1234abcd"} {
			if strings.Contains(string(data), id) {
				t.Errorf("%s holds %s", path, id)
			}
		}
	}
}
