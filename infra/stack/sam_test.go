package stack_test

import (
	"fmt"
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"gopkg.in/yaml.v3"
)

// parameters make template.yaml describe the stack for the existing database of
// the examples.
var parameters = map[string]any{
	"VpcId": "vpc-0feedface0feedfac", "SubnetIds": []any{"subnet-0decade00decade0a", "subnet-0decade00decade0b"},
	"DatabaseSecurityGroupId": "sg-0facade00facade00", "DatabaseHost": "example.cinventedexam.eu-central-1.rds.amazonaws.com",
	"DatabaseName": "app", "DatabaseResourceId": "db-INVENTEDEXAMPLE", "AdminSecretArn": admin, "AdminKeyArn": adminKey,
	"ApiKeySecretArn": ref("SumeApiKey"),
	"AWS::StackName":  "sume-poller", "AWS::Region": "eu-central-1", "AWS::AccountId": "111122223333", "AWS::Partition": "aws",
}

func ref(id string) map[string]any { return map[string]any{"Ref": id} }

// sam returns the resources of template.yaml with its parameters filled in, and its
// functions with the properties of Globals.
func sam(t *testing.T) map[string]map[string]any {
	t.Helper()
	data, err := os.ReadFile("../../template.yaml")
	if err != nil {
		t.Fatal(err)
	}
	var document yaml.Node
	if err := yaml.Unmarshal(data, &document); err != nil {
		t.Fatal(err)
	}
	values := map[string]any{}
	for name, value := range parameters {
		values[name] = value
	}
	raw := plainNode(t, document.Content[0], nil).(map[string]any)
	for name, p := range raw["Parameters"].(map[string]any) {
		if value, ok := p.(map[string]any)["Default"]; ok {
			values[name] = value
		}
	}
	template := plainNode(t, document.Content[0], values).(map[string]any)
	globals := template["Globals"].(map[string]any)["Function"].(map[string]any)
	all := map[string]map[string]any{}
	for id, r := range template["Resources"].(map[string]any) {
		r := r.(map[string]any)
		if r["Type"] == "AWS::Serverless::Function" {
			merge(r["Properties"].(map[string]any), globals)
		}
		all[id] = r
	}
	return all
}

// merge adds what is missing, at every level.
func merge(into, from map[string]any) {
	for key, value := range from {
		have, ok := into[key]
		if !ok {
			into[key] = value
			continue
		}
		if inner, ok := value.(map[string]any); ok {
			merge(have.(map[string]any), inner)
		}
	}
}

var placeholder = regexp.MustCompile(`\$\{([^}]+)\}`)

// plainNode returns a node as JSON has it. !Ref, !GetAtt and !Sub become their
// values, or their long forms if there is no value.
func plainNode(t *testing.T, n *yaml.Node, values map[string]any) any {
	t.Helper()
	known := func(name string) any {
		if value, ok := values[name]; ok {
			return value
		}
		return ref(name)
	}
	switch {
	case n.Tag == "!Ref":
		return known(n.Value)
	case n.Tag == "!GetAtt":
		id, attribute, _ := strings.Cut(n.Value, ".")
		return map[string]any{"Fn::GetAtt": []any{id, attribute}}
	case n.Tag == "!Sub":
		return placeholder.ReplaceAllStringFunc(n.Value, func(s string) string {
			if value, ok := known(s[2 : len(s)-1]).(string); ok {
				return value
			}
			return s
		})
	case n.Kind == yaml.MappingNode:
		m := map[string]any{}
		for i := 0; i < len(n.Content); i += 2 {
			m[n.Content[i].Value] = plainNode(t, n.Content[i+1], values)
		}
		return m
	case n.Kind == yaml.SequenceNode:
		list := []any{}
		for _, item := range n.Content {
			list = append(list, plainNode(t, item, values))
		}
		return list
	}
	var value any
	if err := n.Decode(&value); err != nil {
		t.Fatal(err)
	}
	if number, ok := value.(int); ok {
		return float64(number)
	}
	return value
}

var hash = regexp.MustCompile(`^([A-Za-z]+?)[0-9A-F]{8}$`)

// cdk returns the synthesized resources. Their ids, and references to them, have the
// names of the constructs, which are those of template.yaml.
func cdk(t *testing.T) map[string]resource {
	t.Helper()
	all := map[string]resource{}
	for id, r := range resources(t, given.app) {
		r.Properties, _ = named(r.Properties).(map[string]any)
		all[name(id)] = r
	}
	return all
}

func name(id string) string {
	switch {
	case strings.HasPrefix(id, "NetworkFunctionsto"):
		return "NetworkToDatabase"
	case strings.HasPrefix(id, "NetworkDatabasefrom"):
		return "NetworkFromFunctions"
	}
	return hash.ReplaceAllString(id, "$1")
}

func named(value any) any {
	switch value := value.(type) {
	case map[string]any:
		if join, ok := value["Fn::Join"].([]any); ok && len(value) == 1 {
			var b strings.Builder
			for _, part := range join[1].([]any) {
				if s, ok := part.(string); ok {
					b.WriteString(s)
				} else {
					fmt.Fprintf(&b, "${%v}", part.(map[string]any)["Ref"])
				}
			}
			return b.String()
		}
		m := map[string]any{}
		for key, inner := range value {
			m[key] = named(inner)
		}
		return m
	case []any:
		list := make([]any, len(value))
		for i, inner := range value {
			list[i] = named(inner)
		}
		return list
	case string:
		return name(value)
	}
	return value
}

func TestTemplate_EqualsStack(t *testing.T) {
	stack, template := cdk(t), sam(t)
	for _, id := range []string{"Poller", "Submit", "Migrate"} {
		want, got := stack[id].Properties, template[id]["Properties"].(map[string]any)
		if got["CodeUri"] != "dist/"+strings.ToLower(id)+"/" {
			t.Errorf("%s: code of %v", id, got["CodeUri"])
		}
		delete(want, "Code")
		variables := got["Environment"].(map[string]any)["Variables"].(map[string]any)
		for key, value := range variables {
			if _, number := value.(float64); number {
				variables[key] = asJSON(t, value) // a variable is a string, even if the parameter is a number
			}
		}
		for _, key := range []string{"CodeUri", "Events", "EventInvokeConfig"} {
			if key != "CodeUri" && id != "Poller" && got[key] != nil {
				t.Errorf("%s: got %s", id, key)
			}
			delete(got, key)
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s: %s", id, diff)
		}
	}
	for _, id := range []string{"NetworkFunctions", "NetworkToDatabase", "NetworkFromFunctions", "PollerLogs", "SubmitLogs", "MigrateLogs"} {
		got := template[id]["Properties"]
		if diff := cmp.Diff(any(stack[id].Properties), got); diff != "" {
			t.Errorf("%s: %s", id, diff)
		}
	}
	for _, id := range []string{"PollerRole", "SubmitRole", "MigrateRole", "ScheduleRole"} {
		got := template[id]["Properties"].(map[string]any)
		policies := got["Policies"].([]any)
		delete(got, "Policies")
		if diff := cmp.Diff(stack[id].Properties, got); diff != "" {
			t.Errorf("%s: %s", id, diff)
		}
		if len(policies) != 1 {
			t.Errorf("%s: got %d policies", id, len(policies))
		}
		if diff := cmp.Diff(stack[id+"DefaultPolicy"].Properties["PolicyDocument"], policies[0].(map[string]any)["PolicyDocument"]); diff != "" {
			t.Errorf("%s: %s", id, diff)
		}
	}
}

func TestTemplate_NoRetries(t *testing.T) {
	stack, poller := cdk(t), sam(t)["Poller"]["Properties"].(map[string]any)
	async := map[string]any{"MaximumRetryAttempts": 0.0, "MaximumEventAgeInSeconds": 60.0}
	if diff := cmp.Diff(any(async), poller["EventInvokeConfig"]); diff != "" {
		t.Error(diff)
	}
	event := poller["Events"].(map[string]any)["Schedule"].(map[string]any)
	if event["Type"] != "ScheduleV2" {
		t.Errorf("got an event of type %v", event["Type"])
	}
	got := event["Properties"].(map[string]any)
	// SAM would name it PollerSchedule, and a second stack could not have that name.
	if got["OmitName"] != true {
		t.Error("the schedule's name is not left to CloudFormation")
	}
	delete(got, "OmitName")
	want := stack["Schedule"].Properties
	target := want["Target"].(map[string]any)
	delete(want, "Target")
	want["RetryPolicy"], want["RoleArn"] = target["RetryPolicy"], target["RoleArn"]
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}
