package stack_test

import (
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/aws/aws-cdk-go/awscdk/v2/assertions"
	"github.com/aws/jsii-runtime-go"
)

func TestSchedule(t *testing.T) {
	poller, _ := only(t, given.app, "AWS::Lambda::Function", "FunctionName", "sume-poller-poller")
	check(t, func() {
		given.app.HasResourceProperties(jsii.String("AWS::Scheduler::Schedule"), map[string]any{
			"ScheduleExpression": "rate(1 minute)", "State": "ENABLED", "FlexibleTimeWindow": map[string]any{"Mode": "OFF"},
			"Target": map[string]any{
				"Arn":   map[string]any{"Fn::GetAtt": []string{poller, "Arn"}},
				"Input": assertions.Match_Absent(),
			},
		})
	})
}

// Lambda's queue retries twice, even if the schedule does not: both must be off.
func TestSchedule_NoRetries(t *testing.T) {
	poller, _ := only(t, given.app, "AWS::Lambda::Function", "FunctionName", "sume-poller-poller")
	check(t, func() {
		given.app.HasResourceProperties(jsii.String("AWS::Scheduler::Schedule"), map[string]any{
			"Target": map[string]any{"RetryPolicy": map[string]any{"MaximumRetryAttempts": 0, "MaximumEventAgeInSeconds": 60}},
		})
	})
	check(t, func() {
		given.app.HasResourceProperties(jsii.String("AWS::Lambda::EventInvokeConfig"), map[string]any{
			"FunctionName": map[string]any{"Ref": poller}, "Qualifier": "$LATEST",
			"MaximumRetryAttempts": 0, "MaximumEventAgeInSeconds": 60,
		})
	})
}

func TestMigration_Order(t *testing.T) {
	for name, s := range map[string]synthesis{"given": given, "made": made, "passwords": passwords} {
		trigger, r := only(t, s.app, "Custom::Trigger")
		rules := resources(t, s.app, "AWS::EC2::SecurityGroup", "AWS::EC2::SecurityGroupEgress", "AWS::EC2::SecurityGroupIngress")
		if len(rules) != 3 {
			t.Errorf("%s: got %d groups and rules, want 3", name, len(rules))
		}
		for rule := range rules {
			if !slices.Contains(r.DependsOn, rule) {
				t.Errorf("%s: the migration does not wait for %s", name, rule)
			}
		}
		for id, later := range resources(t, s.app, "AWS::Lambda::Function", "AWS::Scheduler::Schedule") {
			_, named := later.Properties["FunctionName"]
			waits := later.Type == "AWS::Scheduler::Schedule" || named && later.Properties["Timeout"] != float64(600)
			if got := slices.Contains(later.DependsOn, trigger); got != waits {
				t.Errorf("%s: %s waits for the migration: %t, want %t", name, id, got, waits)
			}
		}
	}
}

func TestMigration_Trigger(t *testing.T) {
	migrate, _ := only(t, given.app, "AWS::Lambda::Function", "FunctionName", "sume-poller-migrate")
	version, v := only(t, given.app, "AWS::Lambda::Version")
	if got, want := asJSON(t, v.Properties["FunctionName"]), `{"Ref":"`+migrate+`"}`; got != want {
		t.Errorf("got a version of %s, want of %s", got, want)
	}
	_, trigger := only(t, given.app, "Custom::Trigger")
	if got, want := asJSON(t, trigger.Properties["HandlerArn"]), `{"Ref":"`+version+`"}`; got != want {
		t.Errorf("got %s, want the version %s, whose id changes with the code and the configuration", got, want)
	}
	for _, key := range []string{"Payload", "Input"} {
		if value, ok := trigger.Properties[key]; ok {
			t.Errorf("got %s %v, want none", key, value)
		}
	}
}

// A trigger that gives up before migrate's timeout invokes migrate again. A trigger
// that waits longer than its function may run leaves the deploy waiting for an hour.
func TestMigration_Timeouts(t *testing.T) {
	_, migrate := only(t, given.app, "AWS::Lambda::Function", "FunctionName", "sume-poller-migrate")
	_, trigger := only(t, given.app, "Custom::Trigger")
	_, own := only(t, given.app, "AWS::Lambda::Function", "Handler", "__entrypoint__.handler")
	waits, err := strconv.ParseFloat(asJSON(t, trigger.Properties["Timeout"]), 64) // milliseconds
	if waits /= 1000; err != nil || waits <= migrate.Properties["Timeout"].(float64) || waits >= own.Properties["Timeout"].(float64) {
		t.Errorf("waits %v s, error %v; migrate may take %v, the trigger's function %v", waits, err, migrate.Properties["Timeout"], own.Properties["Timeout"])
	}
}

func TestMigration_Manual(t *testing.T) {
	check(t, func() { manual.app.ResourceCountIs(jsii.String("Custom::Trigger"), jsii.Number(0)) })
	only(t, manual.app, "AWS::Lambda::Function", "FunctionName", "sume-poller-migrate")
}

func TestSchedule_DependsOn(t *testing.T) {
	_, schedule := only(t, given.app, "AWS::Scheduler::Schedule")
	if async, _ := only(t, given.app, "AWS::Lambda::EventInvokeConfig"); !slices.Contains(schedule.DependsOn, async) {
		t.Errorf("the schedule does not wait for %s", async)
	}
	policies := 0
	for id, policy := range resources(t, given.app, "AWS::IAM::Policy") {
		if !strings.Contains(asJSON(t, policy.Properties["Roles"]), "ScheduleRole") {
			continue
		}
		if slices.Contains(schedule.DependsOn, id) {
			policies++
		}
	}
	if policies != 1 {
		t.Errorf("the schedule waits for %d policies, want its role's", policies)
	}
}
