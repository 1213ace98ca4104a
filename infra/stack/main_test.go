package stack_test

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/aws/aws-cdk-go/awscdk/v2"
	"github.com/aws/aws-cdk-go/awscdk/v2/assertions"
	"github.com/aws/jsii-runtime-go"

	"sumepoller/infra/settings"
	"sumepoller/infra/stack"
)

// The stacks under test, each synthesized once. jsii serves one goroutine at a
// time, so no test here is parallel.
var (
	given     synthesis // for an existing database, with IAM tokens
	made      synthesis // with a new database
	passwords synthesis // for a database without IAM, with customer managed keys and every option on
	manual    synthesis // migrated by hand, no daily limit
)

// synthesis is one synthesized app.
type synthesis struct {
	stacks    stack.Stacks
	app, data assertions.Template // data is nil unless a database is made
	out       string              // the directory of the assembly
}

func TestMain(m *testing.M) {
	code := 1
	defer func() { os.Exit(code) }()
	if _, err := exec.LookPath("node"); err != nil {
		fmt.Fprintln(os.Stderr, "node is not in PATH: the CDK needs Node.js 20 or newer")
		return
	}
	if err := withoutAWS(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return
	}
	temp, err := os.MkdirTemp("", "stack")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return
	}
	defer os.RemoveAll(temp)
	defer jsii.Close()
	dist := writeAssets(filepath.Join(temp, "dist"))
	synth := func(name, file string, change func(*settings.Settings)) synthesis {
		return synthesize(filepath.Join(temp, name), dist, file, change)
	}
	given = synth("given", "existing.json", func(*settings.Settings) {})
	made = synth("made", "new-database.json", func(*settings.Settings) {})
	passwords = synth("passwords", "existing.json", everyOption)
	manual = synth("by-hand", "existing.json", func(s *settings.Settings) { s.Migrate, s.ReadsPerDay = settings.MigrateManual, 0 })
	code = m.Run()
}

// Ids of the variant with every option.
const (
	ownKey    = "arn:aws:kms:eu-central-1:111122223333:key/00000000-0000-4000-8000-0000000000aa"
	ownSecret = "arn:aws:secretsmanager:eu-central-1:111122223333:secret:sume-AbCdEf"
)

func everyOption(s *settings.Settings) {
	s.Name = "clips"
	s.Database.Auth, s.Database.ResourceID, s.Database.Host, s.Database.Port = settings.AuthSecret, "", "db.internal", 6432
	s.APIKeySecretARN, s.KMSKeyARN = ownSecret, ownKey
	s.AlarmEmail, s.ReservedConcurrency, s.MemoryMiB, s.Budget, s.LogRetentionDays = "ops@example.com", 4, 512, "30s", 7
}

func synthesize(out, dist, file string, change func(*settings.Settings)) synthesis {
	s, err := settings.Load(filepath.Join("..", "examples", file))
	if err != nil {
		panic(err)
	}
	change(&s)
	app := newApp(out)
	r := synthesis{stacks: stack.Build(app, s, dist), out: out}
	app.Synth(nil)
	r.app = assertions.Template_FromStack(r.stacks.App, nil)
	if r.stacks.Data != nil {
		r.data = assertions.Template_FromStack(r.stacks.Data, nil)
	}
	return r
}

// newApp uses the feature flags of cdk.json, so that the tests check what is
// deployed. It leaves the validation to the command line.
func newApp(out string) awscdk.App {
	data, err := os.ReadFile("../../cdk.json")
	if err != nil {
		panic(err)
	}
	var file struct{ Context map[string]any }
	if err := json.Unmarshal(data, &file); err != nil {
		panic(err)
	}
	return awscdk.NewApp(&awscdk.AppProps{
		Context: &file.Context, Outdir: jsii.String(out),
		AnalyticsReporting: jsii.Bool(false), BuiltinCloudFormationValidation: jsii.Bool(false),
	})
}

// withoutAWS runs the test program again without the variables that could name an
// account. This is needed because the CDK's process started, with the old
// environment, before any code of this package.
func withoutAWS() error {
	const silence = "JSII_SILENCE_WARNING_END_OF_LIFE_NODE_VERSION"
	env := slices.DeleteFunc(os.Environ(), func(variable string) bool {
		return strings.HasPrefix(variable, "AWS_") || strings.HasPrefix(variable, "CDK_")
	})
	if os.Getenv(silence) == "" {
		env = append(env, silence+"=20")
	}
	if slices.Equal(env, os.Environ()) {
		return nil
	}
	self, err := os.Executable()
	if err != nil {
		return err
	}
	return syscall.Exec(self, os.Args, env)
}

// writeAssets writes the smallest files that CheckAssets accepts, each with
// different content.
func writeAssets(dist string) string {
	for _, name := range []string{"poller", "submit", "migrate"} {
		dir := filepath.Join(dist, name)
		if err := os.MkdirAll(dir, 0o755); err != nil {
			panic(err)
		}
		if err := os.WriteFile(filepath.Join(dir, "bootstrap"), append(program(arm64), name...), 0o755); err != nil {
			panic(err)
		}
	}
	return dist
}
