package stack

import (
	"github.com/aws/aws-cdk-go/awscdk/v2"
	"github.com/aws/aws-cdk-go/awscdk/v2/awscloudwatch"
	"github.com/aws/aws-cdk-go/awscdk/v2/interfaces/interfacesawscloudwatch"
	"github.com/aws/jsii-runtime-go"

	"sumepoller/internal/telemetry"
)

// rule is one alarm. It fires when `ring` of the last `of` periods reach the
// threshold, and clears by itself when they no longer do.
type rule struct {
	id, name    string
	description string // when it rings; what to do first
	metric      awscloudwatch.Metric
	threshold   float64
	below       bool    // rings under the threshold
	ring, of    float64 // periods
	silence     awscloudwatch.TreatMissingData
}

// What no data means. Lambda counts no errors where there are none. A run that
// could not look at the table prints nothing about it: the alarm stays as it
// was, and others ring for the failing or missing runs.
const (
	silenceIsFine  = awscloudwatch.TreatMissingData_NOT_BREACHING
	silenceIsFault = awscloudwatch.TreatMissingData_BREACHING
	silenceIsMute  = awscloudwatch.TreatMissingData_IGNORE
)

// alarms makes all of them and has each tell the topic when it rings and when
// it clears. A limit of reads that is off has no alarm.
func (a *app) alarms(topic *string) []awscloudwatch.CfnAlarm {
	rules := []rule{
		a.runsFailing(), a.throttled(), a.nearTimeout(), a.noRuns(),
		a.jobsLate(), a.jobsFailing(), a.oldestPending(), a.submissionStuck(), a.migrationFailed(),
	}
	if a.settings.ReadsPerDay > 0 {
		rules = append(rules, a.readsSpent())
	}
	made := make([]awscloudwatch.CfnAlarm, len(rules))
	for i, r := range rules {
		comparison := awscloudwatch.ComparisonOperator_GREATER_THAN_OR_EQUAL_TO_THRESHOLD
		if r.below {
			comparison = awscloudwatch.ComparisonOperator_LESS_THAN_THRESHOLD
		}
		alarm := awscloudwatch.NewAlarm(a.stack, jsii.String(r.id), &awscloudwatch.AlarmProps{
			AlarmName:        jsii.String(a.settings.Name + "-" + r.name),
			AlarmDescription: jsii.String(r.description),
			Metric:           r.metric, Threshold: jsii.Number(r.threshold), ComparisonOperator: comparison,
			DatapointsToAlarm: jsii.Number(r.ring), EvaluationPeriods: jsii.Number(r.of),
			TreatMissingData: r.silence,
		})
		made[i] = alarm.Node().DefaultChild().(awscloudwatch.CfnAlarm)
		made[i].SetAlarmActions(&[]*string{topic})
		made[i].SetOkActions(&[]*string{topic})
	}
	return made
}

// runsFailing fires when three of five minutes had a run that failed: one that
// could not do its work at all (the key refused, no secret, no database) or
// that Lambda ended. A single failure mends itself at the next tick.
func (a *app) runsFailing() rule {
	return rule{
		id: "RunsFailingAlarm", name: "runs-failing",
		description: "Fires when runs failed in 3 of 5 minutes; no job is followed meanwhile. First: read the newest error in the log of " +
			a.functionName("poller") + "; it begins with unauthorized:, secret: or database: and names the cure.",
		metric: lambdaMetric(a.poller, "Errors", "Sum", 1), threshold: 1, ring: 3, of: 5, silence: silenceIsFine,
	}
}

// throttled fires when Lambda refused runs in three of five minutes.
func (a *app) throttled() rule {
	return rule{
		id: "ThrottledAlarm", name: "throttled",
		description: "Fires when Lambda refused runs of " + a.functionName("poller") + " in 3 of 5 minutes. First: see whether it was paused " +
			"(reserved concurrency 0), then whether the account's concurrent executions are used up by others.",
		metric: lambdaMetric(a.poller, "Throttles", "Sum", 1), threshold: 1, ring: 3, of: 5, silence: silenceIsFine,
	}
}

// nearTimeout fires when a run came within ten seconds of its limit. A run ends
// within its budget and one read's timeout, so that nothing but a stalled
// database or a starved function gets there.
func (a *app) nearTimeout() rule {
	return rule{
		id: "NearTimeoutAlarm", name: "near-timeout",
		description: "Fires when a run took over 80 of its 90 seconds in 2 of 15 minutes; beyond 90 it is killed and its rows wait for their leases. " +
			"First: look at the database's load and locks, then raise memory_mib.",
		metric: lambdaMetric(a.poller, "Duration", "Maximum", 1), threshold: (pollerTimeout - 10) * 1000, ring: 2, of: 15, silence: silenceIsFine,
	}
}

// noRuns is the heartbeat: it fires when no run began for five minutes, counted
// by Lambda itself, so that a dead schedule and a deleted function ring too.
func (a *app) noRuns() rule {
	return rule{
		id: "NoRunsAlarm", name: "no-runs",
		description: "Fires when " + a.functionName("poller") + " was not invoked for 5 minutes. First: see that the schedule exists and is enabled, " +
			"then that its role may invoke the function.",
		metric: lambdaMetric(a.poller, "Invocations", "Sum", 1), threshold: 1, below: true, ring: 5, of: 5, silence: silenceIsFault,
	}
}

// jobsLate fires when a due job waited five minutes to be claimed.
func (a *app) jobsLate() rule {
	return rule{
		id: "JobsLateAlarm", name: "jobs-late",
		description: "Fires when a due job is 5 minutes late in 2 of 3 minutes. First: see on the dashboard whether the day's or the minute's reads are " +
			"used up (ask Sume for more, or set reads_per_day); else whether the API answers and runs end with budget (raise concurrency).",
		metric: a.metric(telemetry.OldestDueSeconds, "Maximum", 1), threshold: 300, ring: 2, of: 3, silence: silenceIsMute,
	}
}

// jobsFailing fires when a pending job got nothing but errors for half an hour.
// Other jobs may go on as ever.
func (a *app) jobsFailing() rule {
	return rule{
		id: "JobsFailingAlarm", name: "jobs-failing",
		description: "Fires when a job has had no good answer for 30 minutes. First: run `make status`, which lists the failing jobs with their last " +
			"errors; a job that Sume will never answer is ended with `make stop JOB=…`.",
		metric: a.metric(telemetry.FailingJobs, "Maximum", 5), threshold: 1, ring: 1, of: 1, silence: silenceIsMute,
	}
}

// oldestPending fires when a job has been pending for a day. Its reads may
// succeed and never say that it ended: no other alarm sees such a job.
func (a *app) oldestPending() rule {
	return rule{
		id: "OldestPendingAlarm", name: "oldest-pending",
		description: "Fires when a job has been pending for 24 hours. First: run `make status`, which lists the jobs older than a day with what Sume says of them; " +
			"ask Sume about one that never ends, and end its polling with `make stop JOB=…`.",
		metric: a.metric(telemetry.OldestPendingSeconds, "Maximum", 5), threshold: 24 * 60 * 60, ring: 1, of: 1, silence: silenceIsFine,
	}
}

// readsSpent fires when the day's reads pass four fifths of the allowance. It
// clears at midnight UTC, when the count begins anew.
func (a *app) readsSpent() rule {
	return rule{
		id: "ReadsSpentAlarm", name: "reads-spent",
		description: "Fires when four fifths of the day's reads are used; what is left is spread over the rest of the UTC day and jobs are read less often. " +
			"First: look for a backfill or for failing jobs that spend reads, then ask Sume for a larger allowance and set reads_per_day.",
		metric: a.metric(telemetry.ReadsToday, "Maximum", 5), threshold: float64(a.settings.ReadsPerDay) * 4 / 5, ring: 1, of: 1, silence: silenceIsMute,
	}
}

// submissionStuck fires when a purchase was begun ten minutes ago and nobody
// knows what came of it.
func (a *app) submissionStuck() rule {
	return rule{
		id: "SubmissionStuckAlarm", name: "submission-stuck",
		description: "Fires when a submission has had no answer for 10 minutes, or the table refused a bought job's row; a video may be paid for and not followed. " +
			"First: `make status` lists the keys and what to fix; then submit again with the same key and body, which finds the same job and pays once.",
		metric: a.metric(telemetry.StuckSubmissions, "Maximum", 5), threshold: 1, ring: 1, of: 1, silence: silenceIsMute,
	}
}

// migrationFailed fires when a run of migrate failed, at a deploy or by hand.
func (a *app) migrationFailed() rule {
	return rule{
		id: "MigrationFailedAlarm", name: "migration-failed",
		description: "Fires when migrate failed; a deploy then leaves the functions their old code, which works on the old schema and on the new. First: read the newest error in " +
			"the log of " + a.functionName("migrate") + ", do what its line says, and deploy again.",
		metric: lambdaMetric(a.migrate, "Errors", "Sum", 5), threshold: 1, ring: 1, of: 1, silence: silenceIsFine,
	}
}

// metric is one of those that the poller prints.
func (a *app) metric(name, statistic string, minutes float64) awscloudwatch.Metric {
	return awscloudwatch.NewMetric(&awscloudwatch.MetricProps{
		Namespace: jsii.String(telemetry.Namespace), MetricName: jsii.String(name),
		DimensionsMap: &map[string]*string{telemetry.Dimension: a.poller.FunctionName()},
		Statistic:     jsii.String(statistic), Period: awscdk.Duration_Minutes(jsii.Number(minutes)),
	})
}

// lambdaMetric is one of those that Lambda keeps of a function.
func lambdaMetric(f function, name, statistic string, minutes float64) awscloudwatch.Metric {
	return f.Metric(jsii.String(name), &awscloudwatch.MetricOptions{
		Statistic: jsii.String(statistic), Period: awscdk.Duration_Minutes(jsii.Number(minutes)),
	})
}

// refs are the alarms as widgets want them.
func refs(alarms []awscloudwatch.CfnAlarm) *[]interfacesawscloudwatch.IAlarmRef {
	list := make([]interfacesawscloudwatch.IAlarmRef, len(alarms))
	for i, alarm := range alarms {
		list[i] = alarm
	}
	return &list
}
