package stack_test

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-cdk-go/awscdk/v2/assertions"
	"github.com/aws/jsii-runtime-go"
	"github.com/google/go-cmp/cmp"

	"sumepoller/internal/config"
	"sumepoller/internal/operator"
	"sumepoller/internal/poller"
	"sumepoller/internal/telemetry"
)

// alarm holds the properties that make an alarm fire.
type alarm struct {
	Namespace, MetricName, Statistic, Function string
	Over                                       bool // fires at the threshold and above it, otherwise below it
	Threshold                                  float64
	Points, Of, Period                         float64
	Silence                                    string
}

func alarms(t *testing.T, s synthesis) map[string]alarm {
	t.Helper()
	all := map[string]alarm{}
	for _, r := range resources(t, s.app, "AWS::CloudWatch::Alarm") {
		p := r.Properties
		dimensions := p["Dimensions"].([]any)
		if len(dimensions) != 1 {
			t.Errorf("%s: got %d dimensions, want one", p["AlarmName"], len(dimensions))
		}
		dimension := dimensions[0].(map[string]any)
		if dimension["Name"] != telemetry.Dimension {
			t.Errorf("%s: got dimension %s", p["AlarmName"], dimension["Name"])
		}
		ref := dimension["Value"].(map[string]any)["Ref"].(string)
		all[p["AlarmName"].(string)] = alarm{
			Namespace: p["Namespace"].(string), MetricName: p["MetricName"].(string), Statistic: p["Statistic"].(string),
			Function: resources(t, s.app)[ref].Properties["FunctionName"].(string),
			Over:     p["ComparisonOperator"] == "GreaterThanOrEqualToThreshold", Threshold: p["Threshold"].(float64),
			Points: p["DatapointsToAlarm"].(float64), Of: p["EvaluationPeriods"].(float64), Period: p["Period"].(float64),
			Silence: p["TreatMissingData"].(string),
		}
	}
	return all
}

// no-runs fires when there is no data, and no alarm on errors does. A change of an
// alarm's numbers must be made here too; a new alarm needs no entry.
func TestAlarms_Thresholds(t *testing.T) {
	const lambda, product, p = "AWS/Lambda", "SumePoller", "sume-poller-poller"
	want := map[string]alarm{
		"sume-poller-runs-failing":     {lambda, "Errors", "Sum", p, true, 1, 3, 5, 60, "notBreaching"},
		"sume-poller-throttled":        {lambda, "Throttles", "Sum", p, true, 1, 3, 5, 60, "notBreaching"},
		"sume-poller-near-timeout":     {lambda, "Duration", "Maximum", p, true, 80_000, 2, 15, 60, "notBreaching"},
		"sume-poller-no-runs":          {lambda, "Invocations", "Sum", p, false, 1, 5, 5, 60, "breaching"},
		"sume-poller-jobs-late":        {product, "OldestDueSeconds", "Maximum", p, true, 300, 2, 3, 60, "ignore"},
		"sume-poller-jobs-failing":     {product, "FailingJobs", "Maximum", p, true, 1, 1, 1, 300, "ignore"},
		"sume-poller-oldest-pending":   {product, "OldestPendingSeconds", "Maximum", p, true, 24 * 60 * 60, 1, 1, 300, "notBreaching"},
		"sume-poller-reads-spent":      {product, "ReadsToday", "Maximum", p, true, 8000, 1, 1, 300, "ignore"},
		"sume-poller-submission-stuck": {product, "StuckSubmissions", "Maximum", p, true, 1, 1, 1, 300, "ignore"},
		"sume-poller-migration-failed": {lambda, "Errors", "Sum", "sume-poller-migrate", true, 1, 1, 1, 300, "notBreaching"},
	}
	got := alarms(t, given)
	for name := range got {
		if _, ok := want[name]; !ok {
			delete(got, name)
		}
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

var (
	alarmTable = regexp.MustCompile(`(?m)^\| alarm \|.*\n\|[-| ]+\n((?:\|.*\n)+)`)
	alarmRow   = regexp.MustCompile("(?m)^\\| `([a-z-]+)` \\| ([^|]+) \\|")
	number     = regexp.MustCompile(`\d+`)
)

// inspect counts what the alarms fire for.
func TestAlarms_SameAsInspect(t *testing.T) {
	if config.LongRunning != operator.LongRunning {
		t.Errorf("the alarm fires at %v, inspect lists jobs from %v on", config.LongRunning, operator.LongRunning)
	}
}

// The documents have a table of the same alarms, with the same numbers.
func TestAlarms_Documents(t *testing.T) {
	documented := map[string][]string{}
	files, _ := filepath.Glob("../../docs/*.md")
	for _, file := range append(files, "../../README.md") {
		content, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for _, table := range alarmTable.FindAllStringSubmatch(string(content), -1) {
			for _, row := range alarmRow.FindAllStringSubmatch(table[1], -1) {
				documented[row[1]] = number.FindAllString(row[2], -1)
			}
		}
	}
	want := map[string][]string{}
	for _, r := range resources(t, given.app, "AWS::CloudWatch::Alarm") {
		when, _, _ := strings.Cut(r.Properties["AlarmDescription"].(string), " First: ")
		want[strings.TrimPrefix(r.Properties["AlarmName"].(string), "sume-poller-")] = number.FindAllString(when, -1)
	}
	if diff := cmp.Diff(want, documented); diff != "" {
		t.Errorf("numbers of each alarm (-stack +documents):\n%s", diff)
	}
}

func TestAlarms_NoDailyLimit(t *testing.T) {
	if _, ok := alarms(t, manual)["sume-poller-reads-spent"]; ok {
		t.Error("got an alarm without a daily limit")
	}
}

// A run prints every metric of the alarms and the dashboard, under the same names
// and dimension, and the dashboard shows every metric that a run prints.
func TestMetrics_Printed(t *testing.T) {
	var line bytes.Buffer
	run := telemetry.Run{Function: "sume-poller-poller", Summary: poller.NewSummary("id", poller.ModeScheduled), Counted: true, At: time.Unix(0, 0)}
	if err := telemetry.Emit(&line, run); err != nil {
		t.Fatal(err)
	}
	var printed struct {
		FunctionName string
		AWS          struct {
			CloudWatchMetrics []struct {
				Namespace  string
				Dimensions [][]string
				Metrics    []struct{ Name string }
			}
		} `json:"_aws"`
	}
	if err := json.Unmarshal(line.Bytes(), &printed); err != nil {
		t.Fatal(err)
	}
	directive := printed.AWS.CloudWatchMetrics[0]
	if directive.Namespace != "SumePoller" || !cmp.Equal(directive.Dimensions, [][]string{{"FunctionName"}}) {
		t.Errorf("got namespace %s, dimensions %v", directive.Namespace, directive.Dimensions)
	}
	names := map[string]bool{}
	for _, m := range directive.Metrics {
		names[m.Name] = true
	}
	if len(names) < 12 || len(names) != len(telemetry.Metrics()) {
		t.Errorf("got %d metrics, want %d, 12 at least", len(names), len(telemetry.Metrics()))
	}
	for name, a := range alarms(t, given) {
		if a.Namespace == directive.Namespace && (!names[a.MetricName] || a.Function != printed.FunctionName) {
			t.Errorf("%s watches %s of %s, which no run prints", name, a.MetricName, a.Function)
		}
	}
	_, board := only(t, given.app, "AWS::CloudWatch::Dashboard")
	body := asJSON(t, board.Properties["DashboardBody"])
	for name := range names {
		if !strings.Contains(body, `\"SumePoller\",\"`+name+`\",\"FunctionName\"`) && !strings.Contains(body, `\\\"SumePoller\\\",\\\"`+name+`\\\",\\\"FunctionName\\\"`) {
			t.Errorf("the dashboard does not show %s", name)
		}
	}
}

func TestAlarms_Descriptions(t *testing.T) {
	for id, r := range resources(t, given.app, "AWS::CloudWatch::Alarm") {
		description := r.Properties["AlarmDescription"].(string)
		if !strings.HasPrefix(description, "Fires when ") || !strings.Contains(description, " First: ") || len(description) > 1024 {
			t.Errorf("%s: got %q", id, description)
		}
	}
}

// An alarm reaches a person if it names the topic, the policies of the topic and
// of its key allow CloudWatch, and somebody is subscribed.
func TestAlarms_Topic(t *testing.T) {
	topic, tp := only(t, passwords.app, "AWS::SNS::Topic")
	at := []any{map[string]any{"Ref": topic}}
	for id, r := range resources(t, passwords.app, "AWS::CloudWatch::Alarm") {
		if !cmp.Equal(r.Properties["AlarmActions"], any(at)) || !cmp.Equal(r.Properties["OKActions"], any(at)) {
			t.Errorf("%s: notifies %v and %v, want the topic", id, r.Properties["AlarmActions"], r.Properties["OKActions"])
		}
		if name := r.Properties["AlarmName"].(string); !strings.HasPrefix(name, "clips-") {
			t.Errorf("%s: the topic's policy does not know the name %s", id, name)
		}
	}
	cloudwatch := map[string]any{"Service": "cloudwatch.amazonaws.com"}
	check(t, func() {
		passwords.app.HasResourceProperties(jsii.String("AWS::SNS::TopicPolicy"), map[string]any{
			"Topics": at,
			"PolicyDocument": map[string]any{"Statement": assertions.Match_ArrayWith(&[]any{map[string]any{
				"Sid": "AlarmsPublish", "Effect": "Allow", "Action": "sns:Publish", "Principal": cloudwatch, "Resource": at[0],
				"Condition": map[string]any{
					"ArnLike":      map[string]any{"aws:SourceArn": "arn:aws:cloudwatch:eu-central-1:111122223333:alarm:clips-*"},
					"StringEquals": map[string]any{"aws:SourceAccount": "111122223333"},
				},
			}})},
		})
	})
	key, _ := only(t, passwords.app, "AWS::KMS::Key")
	if got, want := asJSON(t, tp.Properties["KmsMasterKeyId"]), `{"Fn::GetAtt":["`+key+`","Arn"]}`; got != want {
		t.Errorf("the topic is under %s, want %s", got, want)
	}
	check(t, func() {
		passwords.app.HasResourceProperties(jsii.String("AWS::KMS::Key"), map[string]any{
			"EnableKeyRotation": true,
			"KeyPolicy": map[string]any{"Statement": assertions.Match_ArrayWith(&[]any{map[string]any{
				"Sid": "AlarmsEncrypt", "Effect": "Allow", "Action": []any{"kms:Decrypt", "kms:GenerateDataKey*"}, "Principal": cloudwatch, "Resource": "*",
			}})},
		})
	})
	check(t, func() {
		passwords.app.HasResourceProperties(jsii.String("AWS::SNS::Subscription"),
			map[string]any{"Protocol": "email", "Endpoint": "ops@example.com", "TopicArn": at[0]})
	})
}

func TestAlarms_NoSubscriber(t *testing.T) {
	warnings := func(s synthesis) int {
		return len(*assertions.Annotations_FromStack(s.stacks.App).FindWarning(jsii.String("*"), assertions.Match_StringLikeRegexp(jsii.String("nobody is notified"))))
	}
	if got := warnings(given); got != 1 {
		t.Errorf("got %d warnings without an address, want 1", got)
	}
	if got := warnings(passwords); got != 0 {
		t.Errorf("got %d warnings with an address, want none", got)
	}
}
