package stack

import (
	"fmt"
	"strings"
	"time"

	"github.com/aws/aws-cdk-go/awscdk/v2"
	"github.com/aws/aws-cdk-go/awscdk/v2/awscloudwatch"
	"github.com/aws/aws-cdk-go/awscdk/v2/interfaces/interfacesawscloudwatch"
	"github.com/aws/jsii-runtime-go"

	"sumepoller/internal/config"
	"sumepoller/internal/telemetry"
)

// alarm fires when `points` of the last `of` periods reach the threshold. It
// recovers by itself when they no longer do.
type alarm struct {
	name       string // after the stack's name; its construct is named after it too
	metric     awscloudwatch.Metric
	threshold  float64
	below      bool // fires below the threshold
	points, of float64
	missing    awscloudwatch.TreatMissingData
	when       string // "Fires when …"
	first      string // "First: …", what a person does
}

// What missing data means. Lambda counts no errors when there are none. A run
// that could not read the table prints no metric of it: such an alarm keeps its
// state, and others fire for the runs that fail or do not start.
const (
	missingIsGood    = awscloudwatch.TreatMissingData_NOT_BREACHING
	missingIsBad     = awscloudwatch.TreatMissingData_BREACHING
	missingIsIgnored = awscloudwatch.TreatMissingData_IGNORE
)

// alarms is the table of all alarms. The documents have the same table, and a
// test compares the two.
func (a *app) alarms() []alarm {
	poller, migrate := a.functionName("poller"), a.functionName("migrate")
	all := []alarm{
		{ // A single failed run is followed by a good one a minute later.
			name: "runs-failing", metric: lambdaMetric(a.poller, "Errors", "Sum", 1), threshold: 1, points: 3, of: 5, missing: missingIsGood,
			when:  "runs failed in 3 of 5 minutes; no job is read meanwhile",
			first: "read the newest error in the log of " + poller + "; it begins with unauthorized:, secret: or database: and says what to do.",
		}, {
			name: "throttled", metric: lambdaMetric(a.poller, "Throttles", "Sum", 1), threshold: 1, points: 3, of: 5, missing: missingIsGood,
			when:  "Lambda refused runs of " + poller + " in 3 of 5 minutes",
			first: "see whether it was paused (reserved concurrency 0), then whether others use up the account's concurrent executions.",
		}, { // A run ends within its time budget and one read's timeout, unless the database stalls or the function gets no CPU.
			name: "near-timeout", metric: lambdaMetric(a.poller, "Duration", "Maximum", 1), threshold: (pollerTimeout - 10) * 1000, points: 2, of: 15, missing: missingIsGood,
			when:  fmt.Sprintf("a run took over %d of its %d seconds, twice in 15 minutes; at the limit it is killed and its rows wait until their leases expire", pollerTimeout-10, pollerTimeout),
			first: "look at the database's load and locks, then raise memory_mib.",
		}, { // Lambda counts invocations, so that this fires for a dead schedule and a deleted function too.
			name: "no-runs", metric: lambdaMetric(a.poller, "Invocations", "Sum", 1), threshold: 1, below: true, points: 5, of: 5, missing: missingIsBad,
			when:  poller + " was not invoked for 5 minutes",
			first: "see that the schedule exists and is enabled, then that its role may invoke the function.",
		}, {
			name: "jobs-late", metric: a.metric(telemetry.OldestDueSeconds, "Maximum", 1), threshold: 300, points: 2, of: 3, missing: missingIsIgnored,
			when: "a due job is 5 minutes late in 2 of 3 minutes",
			first: "see on the dashboard whether the daily quota or the minute limit is used up (ask Sume for more, or set reads_per_day); " +
				"otherwise whether the API answers, and whether runs end with budget (raise concurrency).",
		}, { // Other jobs may be read as usual.
			name: "jobs-failing", metric: a.metric(telemetry.FailingJobs, "Maximum", 5), threshold: 1, points: 1, of: 1, missing: missingIsIgnored,
			when:  fmt.Sprintf("all reads of a job have failed for %d minutes", config.FailingAfter/time.Minute),
			first: "run `make status`, which lists the failing jobs with their last errors; a job that Sume will never answer is ended with `make stop JOB=…`.",
		}, { // The reads of such a job may succeed and never say that it has finished: no other alarm sees it.
			name: "oldest-pending", metric: a.metric(telemetry.OldestPendingSeconds, "Maximum", 5), threshold: config.LongRunning.Seconds(), points: 1, of: 1, missing: missingIsGood,
			when: fmt.Sprintf("a job has been pending for %d hours", config.LongRunning/time.Hour),
			first: "run `make status`, which lists the jobs older than a day with Sume's status of each; " +
				"ask Sume about one that never ends, and end its polling with `make stop JOB=…`.",
		}, {
			name: "submission-stuck", metric: a.metric(telemetry.StuckSubmissions, "Maximum", 5), threshold: 1, points: 1, of: 1, missing: missingIsIgnored,
			when:  fmt.Sprintf("a submission has had no answer for %d minutes, or the table refused a bought job's row; a video may be paid for and not followed", config.StuckAfter/time.Minute),
			first: "`make status` lists the keys and what to fix; then submit again with the same key and body, which finds the same job and pays once.",
		}, {
			name: "migration-failed", metric: lambdaMetric(a.migrate, "Errors", "Sum", 5), threshold: 1, points: 1, of: 1, missing: missingIsGood,
			when:  "migrate failed; a deploy then leaves the functions their old code, which works on the old schema and on the new",
			first: "read the newest error in the log of " + migrate + ", do what its line says, and deploy again.",
		},
	}
	if limit := a.settings.ReadsPerDay; limit > 0 { // It recovers at midnight UTC, when a new daily quota begins.
		all = append(all, alarm{
			name: "reads-spent", metric: a.metric(telemetry.ReadsToday, "Maximum", 5), threshold: float64(limit) * 4 / 5, points: 1, of: 1, missing: missingIsIgnored,
			when:  "four fifths of the daily limit are used; what is left is spread over the rest of the UTC day, and jobs are read less often",
			first: "look for a backfill or for failing jobs that use up reads, then ask Sume for a higher limit and set reads_per_day.",
		})
	}
	return all
}

// newAlarms makes the alarms. Each notifies the topic when it fires and when it
// recovers.
func (a *app) newAlarms(topic *string) []interfacesawscloudwatch.IAlarmRef {
	var made []interfacesawscloudwatch.IAlarmRef
	for _, r := range a.alarms() {
		comparison := awscloudwatch.ComparisonOperator_GREATER_THAN_OR_EQUAL_TO_THRESHOLD
		if r.below {
			comparison = awscloudwatch.ComparisonOperator_LESS_THAN_THRESHOLD
		}
		id := ""
		for word := range strings.SplitSeq(r.name, "-") {
			id += strings.ToUpper(word[:1]) + word[1:]
		}
		created := awscloudwatch.NewAlarm(a.stack, jsii.String(id+"Alarm"), &awscloudwatch.AlarmProps{
			AlarmName:        jsii.String(a.settings.Name + "-" + r.name),
			AlarmDescription: jsii.String("Fires when " + r.when + ". First: " + r.first),
			Metric:           r.metric, Threshold: jsii.Number(r.threshold), ComparisonOperator: comparison,
			DatapointsToAlarm: jsii.Number(r.points), EvaluationPeriods: jsii.Number(r.of),
			TreatMissingData: r.missing,
		}).Node().DefaultChild().(awscloudwatch.CfnAlarm)
		created.SetAlarmActions(&[]*string{topic})
		created.SetOkActions(&[]*string{topic})
		made = append(made, created)
	}
	return made
}

// metric returns one of the metrics that the poller prints.
func (a *app) metric(name, statistic string, minutes float64) awscloudwatch.Metric {
	return awscloudwatch.NewMetric(&awscloudwatch.MetricProps{
		Namespace: jsii.String(telemetry.Namespace), MetricName: jsii.String(name),
		DimensionsMap: &map[string]*string{telemetry.Dimension: a.poller.FunctionName()},
		Statistic:     jsii.String(statistic), Period: awscdk.Duration_Minutes(jsii.Number(minutes)),
	})
}

// lambdaMetric returns one of the metrics that Lambda keeps of a function.
func lambdaMetric(f function, name, statistic string, minutes float64) awscloudwatch.Metric {
	return f.Metric(jsii.String(name), &awscloudwatch.MetricOptions{
		Statistic: jsii.String(statistic), Period: awscdk.Duration_Minutes(jsii.Number(minutes)),
	})
}
