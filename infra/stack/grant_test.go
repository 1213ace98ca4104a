package stack_test

import (
	"fmt"
	"slices"
	"sort"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// grants returns what a function's role may do, one line for each action: effect,
// action, resource and the condition, if there is one.
func grants(t *testing.T, s synthesis, roleID string) []string {
	t.Helper()
	var lines []string
	for _, policy := range resources(t, s.app, "AWS::IAM::Policy") {
		if asJSON(t, policy.Properties["Roles"]) != `[{"Ref":"`+roleID+`"}]` {
			continue
		}
		var document struct {
			Statement []struct {
				Effect           string
				Action, Resource any
				Condition        any
			}
		}
		remarshal(t, policy.Properties["PolicyDocument"], &document)
		for _, st := range document.Statement {
			actions, many := st.Action.([]any)
			if !many {
				actions = []any{st.Action}
			}
			for _, action := range actions {
				line := fmt.Sprintf("%s %s %s", st.Effect, action, asJSON(t, st.Resource))
				if st.Condition != nil {
					line += " where " + asJSON(t, st.Condition)
				}
				lines = append(lines, line)
			}
		}
	}
	sort.Strings(lines)
	return lines
}

// roleOf returns the id of a function's role.
func roleOf(t *testing.T, s synthesis, name string) string {
	t.Helper()
	_, f := only(t, s.app, "AWS::Lambda::Function", "FunctionName", name)
	return f.Properties["Role"].(map[string]any)["Fn::GetAtt"].([]any)[0].(string)
}

// always returns what every function may do: write its log, and have Lambda, but
// not its code, attach it to the network.
func always(t *testing.T, s synthesis, name string) []string {
	t.Helper()
	logs, _ := only(t, s.app, "AWS::Logs::LogGroup", "LogGroupName", "/aws/lambda/"+name)
	at := `{"Fn::GetAtt":["` + logs + `","Arn"]}`
	lines := []string{"Allow logs:CreateLogStream " + at, "Allow logs:PutLogEvents " + at}
	for _, call := range []string{"AssignPrivateIpAddresses", "CreateNetworkInterface", "DeleteNetworkInterface", "DescribeNetworkInterfaces", "DescribeSubnets", "UnassignPrivateIpAddresses"} {
		lines = append(lines, "Allow ec2:"+call+" *",
			"Deny ec2:"+call+` * where {"ArnEquals":{"lambda:SourceFunctionArn":"arn:aws:lambda:eu-central-1:111122223333:function:`+name+`"}}`)
	}
	return lines
}

const (
	user      = "arn:aws:rds-db:eu-central-1:111122223333:dbuser:db-INVENTEDEXAMPLE/sume_poller_"
	admin     = "arn:aws:secretsmanager:eu-central-1:111122223333:secret:rds!db-invented-example-AbCdEf"
	adminKey  = "arn:aws:kms:eu-central-1:111122223333:key/00000000-0000-4000-8000-00000000cafe"
	viaSecret = ` where {"StringEquals":{"kms:ViaService":{"Fn::Join":["",["secretsmanager.eu-central-1.",{"Ref":"AWS::URLSuffix"}]]}}}`
)

func TestGrants_Functions(t *testing.T) {
	read, decrypt := "Allow secretsmanager:GetSecretValue ", "Allow kms:Decrypt "
	for name, c := range map[string]struct {
		of   synthesis
		want []string
	}{
		"sume-poller-poller": {given, []string{read + `{"Ref":"SumeApiKey"}`, "Allow rds-db:connect " + user + "poller"}},
		"sume-poller-submit": {given, []string{read + `{"Ref":"SumeApiKey"}`, "Allow rds-db:connect " + user + "submitter"}},
		"sume-poller-migrate": {given, []string{
			read + admin, decrypt + adminKey + viaSecret,
			"Allow rds-db:connect " + user + "poller", "Allow rds-db:connect " + user + "submitter",
		}},
		"clips-poller": {passwords, []string{
			read + ownSecret, decrypt + ownKey + viaSecret, read + `{"Ref":"PollerLogin"}`, decrypt + ownKey + viaSecret,
		}},
		"clips-submit": {passwords, []string{
			read + ownSecret, decrypt + ownKey + viaSecret, read + `{"Ref":"SubmitterLogin"}`, decrypt + ownKey + viaSecret,
		}},
		"clips-migrate": {passwords, []string{
			read + admin, decrypt + adminKey + viaSecret, read + `{"Ref":"PollerLogin"}`, decrypt + ownKey + viaSecret,
			read + `{"Ref":"SubmitterLogin"}`, decrypt + ownKey + viaSecret,
		}},
	} {
		want := append(always(t, c.of, name), c.want...)
		sort.Strings(want)
		got := grants(t, c.of, roleOf(t, c.of, name))
		if diff := cmp.Diff(slices.Compact(want), slices.Compact(got)); diff != "" {
			t.Errorf("%s: %s", name, diff)
		}
	}
}

func TestGrants_AdminSecret(t *testing.T) {
	for name, s := range map[string]synthesis{"sume-poller-migrate": given, "clips-migrate": passwords} {
		for id, policy := range resources(t, s.app, "AWS::IAM::Policy") {
			migrates := asJSON(t, policy.Properties["Roles"]) == `[{"Ref":"`+roleOf(t, s, name)+`"}]`
			if reads := strings.Contains(asJSON(t, policy.Properties["PolicyDocument"]), admin); reads != migrates {
				t.Errorf("%s: reads the admin's secret: %t, want %t", id, reads, migrates)
			}
		}
	}
}

func TestGrants_NoManagedPolicy(t *testing.T) {
	for id, role := range resources(t, given.app, "AWS::IAM::Role") {
		if managed := role.Properties["ManagedPolicyArns"]; managed != nil && !strings.HasPrefix(id, "AWSCDKTrigger") {
			t.Errorf("%s: got %v", id, managed)
		}
	}
}

func TestGrants_Schedule(t *testing.T) {
	poller, _ := only(t, given.app, "AWS::Lambda::Function", "FunctionName", "sume-poller-poller")
	_, schedule := only(t, given.app, "AWS::Scheduler::Schedule")
	role := schedule.Properties["Target"].(map[string]any)["RoleArn"].(map[string]any)["Fn::GetAtt"].([]any)[0].(string)
	want := []string{`Allow lambda:InvokeFunction {"Fn::GetAtt":["` + poller + `","Arn"]}`}
	if diff := cmp.Diff(want, grants(t, given, role)); diff != "" {
		t.Error(diff)
	}
	trust := asJSON(t, resources(t, given.app, "AWS::IAM::Role")[role].Properties["AssumeRolePolicyDocument"])
	for _, part := range []string{`"Service":"scheduler.amazonaws.com"`, `"aws:SourceAccount":"111122223333"`} {
		if !strings.Contains(trust, part) {
			t.Errorf("got %s, want %s in it", trust, part)
		}
	}
}
