package stack_test

import (
	"path/filepath"
	"testing"

	"github.com/aws/aws-cdk-go/awscdk/v2"
	"github.com/aws/aws-cdk-go/awscdk/v2/assertions"
	"github.com/aws/jsii-runtime-go"
	"github.com/cdklabs/cdk-nag-go/cdknag/v2"

	"sumepoller/infra/settings"
	"sumepoller/infra/stack"
)

// accepted is a finding that stays, with the reason.
type accepted struct{ construct, rule, finding, reason string }

var acceptedInApp = []accepted{
	{"SumeApiKey", "AwsSolutions-SMG4", "", "Sume issues the key; nothing here can make a new one. docs/operate.md says how to change it."},
	{"PollerLogin", "AwsSolutions-SMG4", "", "Only without IAM login. A new password must reach the database with the secret: migrate sets it."},
	{"SubmitterLogin", "AwsSolutions-SMG4", "", "Only without IAM login. A new password must reach the database with the secret: migrate sets it."},
	{"PollerRole", "AwsSolutions-IAM5", "Resource::*", "The network interfaces do not exist before the calls; the same calls are denied to the function's code."},
	{"SubmitRole", "AwsSolutions-IAM5", "Resource::*", "The network interfaces do not exist before the calls; the same calls are denied to the function's code."},
	{"MigrateRole", "AwsSolutions-IAM5", "Resource::*", "The network interfaces do not exist before the calls; the same calls are denied to the function's code."},
}

var acceptedInData = []accepted{
	{"Database", "AwsSolutions-RDS3", "", "One zone by default: the poller waits for the database to come back and loses nothing."},
	{"Database", "AwsSolutions-RDS11", "", "The port is open to the functions' security group alone; another number hides nothing."},
}

// The AwsSolutions pack finds nothing beyond the findings accepted above.
func TestNag_AwsSolutions(t *testing.T) {
	for _, c := range map[string]struct {
		file   string
		change func(*settings.Settings)
	}{
		"given":     {"existing.json", func(*settings.Settings) {}},
		"made":      {"new-database.json", func(*settings.Settings) {}},
		"passwords": {"existing.json", everyOption},
	} {
		s, err := settings.Load(filepath.Join("..", "examples", c.file))
		if err != nil {
			t.Fatal(err)
		}
		c.change(&s)
		temp := t.TempDir()
		app := newApp(filepath.Join(temp, "out"))
		stacks := stack.Build(app, s, writeAssets(filepath.Join(temp, "dist")))
		awscdk.Aspects_Of(app).Add(cdknag.NewAwsSolutionsChecks(&cdknag.NagPackProps{Verbose: jsii.Bool(true)}), nil)
		accept(stacks.App, acceptedInApp)
		if stacks.Data != nil {
			accept(stacks.Data, acceptedInData)
		}
		// A finding fails the synthesis, which prints it.
		check(t, func() { app.Synth(nil) })
		for _, of := range []awscdk.Stack{stacks.App, stacks.Data} {
			if of == nil {
				continue
			}
			check(t, func() {
				assertions.Annotations_FromStack(of).HasNoError(jsii.String("*"), assertions.Match_StringLikeRegexp(jsii.String("AwsSolutions.*")))
			})
		}
	}
}

// accept suppresses the accepted findings. It ignores constructs that this variant
// of the stack does not have.
func accept(of awscdk.Stack, list []accepted) {
	for _, a := range list {
		child := of.Node().TryFindChild(jsii.String(a.construct))
		if child == nil {
			continue
		}
		s := &cdknag.NagPackSuppression{Id: jsii.String(a.rule), Reason: jsii.String(a.reason)}
		if a.finding != "" {
			s.AppliesTo = &[]any{a.finding}
		}
		cdknag.NagSuppressions_AddResourceSuppressions(child, &[]*cdknag.NagPackSuppression{s}, jsii.Bool(true))
	}
}
