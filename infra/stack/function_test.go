package stack_test

import (
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/aws/aws-cdk-go/awscdk/v2/assertions"
	"github.com/aws/jsii-runtime-go"

	"sumepoller/infra/settings"
	"sumepoller/internal/config"
)

func TestFunctions_Properties(t *testing.T) {
	for name, timeout := range map[string]int{"poller": 90, "submit": 60, "migrate": 600} {
		check(t, func() {
			given.app.HasResourceProperties(jsii.String("AWS::Lambda::Function"), map[string]any{
				"FunctionName": "sume-poller-" + name, "Runtime": "provided.al2023", "Architectures": []string{"arm64"},
				"Handler": "bootstrap", "MemorySize": settings.Defaults().MemoryMiB, "Timeout": timeout,
				// Above INFO, Lambda drops the line of metrics.
				"LoggingConfig": map[string]any{"LogFormat": "JSON", "ApplicationLogLevel": "INFO", "SystemLogLevel": "INFO"},
			})
		})
	}
}

func TestFunctions_LogGroups(t *testing.T) {
	for prefix, c := range map[string]struct {
		of   synthesis
		days float64
	}{"sume-poller": {given, 30}, "clips": {passwords, 7}} {
		for _, name := range []string{"poller", "submit", "migrate"} {
			full := prefix + "-" + name
			group, r := only(t, c.of.app, "AWS::Logs::LogGroup", "LogGroupName", "/aws/lambda/"+full)
			if r.Properties["RetentionInDays"] != c.days {
				t.Errorf("%s: got %v days, want %v", full, r.Properties["RetentionInDays"], c.days)
			}
			_, f := only(t, c.of.app, "AWS::Lambda::Function", "FunctionName", full)
			if got, want := asJSON(t, f.Properties["LoggingConfig"].(map[string]any)["LogGroup"]), `{"Ref":"`+group+`"}`; got != want {
				t.Errorf("%s: logs into %s, want into %s", full, got, want)
			}
		}
	}
}

// environment returns a function's variables as a map and as os.Environ returns
// them. A value that CloudFormation fills in is JSON.
func environment(t *testing.T, s synthesis, name string) (map[string]string, []string) {
	t.Helper()
	_, f := only(t, s.app, "AWS::Lambda::Function", "FunctionName", name)
	vars := map[string]string{}
	for key, value := range f.Properties["Environment"].(map[string]any)["Variables"].(map[string]any) {
		vars[key] = asJSON(t, value)
	}
	environ := make([]string, 0, len(vars))
	for _, key := range slices.Sorted(maps.Keys(vars)) {
		environ = append(environ, key+"="+vars[key])
	}
	return vars, environ
}

func TestFunctions_Environment(t *testing.T) {
	for prefix, s := range map[string]synthesis{"sume-poller": given, "clips": passwords} {
		_, environ := environment(t, s, prefix+"-poller")
		if _, err := config.LoadPoller(plain(environ)); err != nil {
			t.Errorf("poller: %v", err)
		}
		_, environ = environment(t, s, prefix+"-submit")
		if _, err := config.LoadSubmit(plain(environ)); err != nil {
			t.Errorf("submit: %v", err)
		}
		_, environ = environment(t, s, prefix+"-migrate")
		if _, err := config.LoadMigrate(plain(environ)); err != nil {
			t.Errorf("migrate: %v", err)
		}
	}
}

// plain replaces the values that CloudFormation fills in by a word.
func plain(environ []string) []string {
	for i, variable := range environ {
		if name, value, _ := strings.Cut(variable, "="); strings.HasPrefix(value, "{") {
			environ[i] = name + "=filled-in"
		}
	}
	return environ
}

func TestFunctions_PollerSettings(t *testing.T) {
	vars, _ := environment(t, passwords, "clips-poller")
	for name, want := range map[string]string{
		config.ReadsPerMinute: "120", config.ReadsPerDay: "10000", config.PollBudget: "30s", config.PollConcurrency: "64",
		config.DatabaseHost: "db.internal", config.DatabasePort: "6432", config.DatabaseName: "app", config.APIKeySecretID: ownSecret,
	} {
		if vars[name] != want {
			t.Errorf("%s: got %q, want %q", name, vars[name], want)
		}
	}
	check(t, func() {
		passwords.app.HasResourceProperties(jsii.String("AWS::Lambda::Function"), map[string]any{"FunctionName": "clips-poller", "MemorySize": 512})
	})
	if vars, _ := environment(t, manual, "sume-poller-poller"); vars[config.ReadsPerDay] != "0" {
		t.Errorf("got %q reads a day, want 0 to reach the poller", vars[config.ReadsPerDay])
	}
}

func TestFunctions_NoSecrets(t *testing.T) {
	for prefix, s := range map[string]synthesis{"sume-poller": given, "clips": passwords} {
		for _, name := range []string{"poller", "submit", "migrate"} {
			vars, _ := environment(t, s, prefix+"-"+name)
			for key, value := range vars {
				if key == config.DatabaseURL || strings.Contains(key, "PASSWORD") || strings.Contains(value, "resolve:secretsmanager") {
					t.Errorf("%s-%s: got %s", prefix, name, key)
				}
				if strings.HasSuffix(key, "_SECRET_ID") && !strings.HasPrefix(value, "arn:") && !strings.HasPrefix(value, `{"Ref":`) {
					t.Errorf("%s-%s: got %s=%s, want an ARN", prefix, name, key, value)
				}
			}
		}
	}
}

// A small account cannot reserve concurrency. The poller does not need it, so the
// stack reserves none unless the settings ask for it.
func TestFunctions_ReservedConcurrency(t *testing.T) {
	for _, s := range []synthesis{given, made} {
		check(t, func() {
			s.app.AllResourcesProperties(jsii.String("AWS::Lambda::Function"),
				assertions.Match_ObjectLike(&map[string]any{"ReservedConcurrentExecutions": assertions.Match_Absent()}))
		})
	}
	_, poller := only(t, passwords.app, "AWS::Lambda::Function", "FunctionName", "clips-poller")
	if got := poller.Properties["ReservedConcurrentExecutions"]; got != 4.0 {
		t.Errorf("got %v reserved, want 4", got)
	}
}
