package stack

import (
	"github.com/aws/aws-cdk-go/awscdk/v2/awscloudwatch"
	"github.com/aws/jsii-runtime-go"

	"sumepoller/internal/telemetry"
)

// Questions that the dashboard answers, from top to bottom.
var questions = [5]string{
	"Is it running?",
	"Is anything late?",
	"What came of the jobs?",
	"How is the day's allowance spent?",
	"What failed last?",
}

// Sizes of widgets; a row is 24 wide.
const (
	rowWidth = 24
	tall     = 6
)

// dashboard makes one page, read from top to bottom. Graphs come from metrics;
// what has no metric is read from the summary line of each run's log.
func (a *app) dashboard(alarms []awscloudwatch.CfnAlarm) {
	board := awscloudwatch.NewDashboard(a.stack, jsii.String("Dashboard"), &awscloudwatch.DashboardProps{
		DashboardName: jsii.String(a.settings.Name),
	})
	rows := [len(questions)][]awscloudwatch.IWidget{
		a.running(alarms), a.late(), a.outcomes(), a.allowance(), a.failures(),
	}
	for i, question := range questions {
		board.AddWidgets(awscloudwatch.NewTextWidget(&awscloudwatch.TextWidgetProps{
			Markdown: jsii.String("## " + question), Width: jsii.Number(rowWidth), Height: jsii.Number(1),
			Background: awscloudwatch.TextWidgetBackground_TRANSPARENT,
		}))
		board.AddWidgets(rows[i]...)
	}
}

func (a *app) running(alarms []awscloudwatch.CfnAlarm) []awscloudwatch.IWidget {
	return []awscloudwatch.IWidget{
		awscloudwatch.NewAlarmStatusWidget(&awscloudwatch.AlarmStatusWidgetProps{
			Title: jsii.String("Alarms"), Alarms: refs(alarms), Width: jsii.Number(8), Height: jsii.Number(tall),
		}),
		graph("Runs a minute", 8,
			lambdaMetric(a.poller, "Invocations", "Sum", 1), lambdaMetric(a.poller, "Errors", "Sum", 1), lambdaMetric(a.poller, "Throttles", "Sum", 1)),
		graph("Length of a run, ms", 8, lambdaMetric(a.poller, "Duration", "Average", 1), lambdaMetric(a.poller, "Duration", "Maximum", 1)),
	}
}

func (a *app) late() []awscloudwatch.IWidget {
	return []awscloudwatch.IWidget{
		graph("Lateness of reads, s", 8,
			a.metric(telemetry.LatenessSeconds, "p50", 5), a.metric(telemetry.LatenessSeconds, "p99", 5), a.metric(telemetry.LatenessSeconds, "Maximum", 5)),
		graph("Left due when a run ended", 8, a.metric(telemetry.DueJobs, "Maximum", 1), a.metric(telemetry.OldestDueSeconds, "Maximum", 1)),
		graph("Without a good answer; age of the oldest job, s", 8,
			a.metric(telemetry.FailingJobs, "Maximum", 5), a.metric(telemetry.StuckSubmissions, "Maximum", 5),
			a.metric(telemetry.OldestPendingSeconds, "Maximum", 5)),
	}
}

func (a *app) outcomes() []awscloudwatch.IWidget {
	return []awscloudwatch.IWidget{
		graph("Finished", 8, a.metric(telemetry.Finished, "Sum", 5), a.metric(telemetry.FinishedBadly, "Sum", 5)),
		a.query("Jobs finished, by their end", 16, awscloudwatch.LogQueryVisualizationType_TABLE, runs,
			"stats sum(summary.finished.completed) as completed, sum(summary.finished.failed) as failed, "+
				"sum(summary.finished.canceled) as canceled, sum(summary.finished.expired) as expired, "+
				"sum(summary.finished.not_found) as not_found, sum(summary.registered) as registered, sum(summary.reopened) as reopened by bin(1h) as hour",
			"sort hour desc"),
	}
}

func (a *app) allowance() []awscloudwatch.IWidget {
	today := &awscloudwatch.GraphWidgetProps{
		Title: jsii.String("Reads today (UTC)"), Width: jsii.Number(8), Height: jsii.Number(tall),
		Left: &[]awscloudwatch.IMetric{a.metric(telemetry.ReadsToday, "Maximum", 5)},
	}
	if day := a.settings.ReadsPerDay; day > 0 {
		today.LeftAnnotations = &[]*awscloudwatch.HorizontalAnnotation{
			{Label: jsii.String("allowance"), Value: jsii.Number(day)},
		}
	}
	return []awscloudwatch.IWidget{
		awscloudwatch.NewGraphWidget(today),
		graph("Reads", 8, a.metric(telemetry.Reads, "Sum", 5), a.metric(telemetry.ReadErrors, "Sum", 5), a.metric(telemetry.RateLimited, "Sum", 5)),
		a.query("Why runs ended", 8, awscloudwatch.LogQueryVisualizationType_TABLE, runs,
			"stats count(*) as runs, sum(summary.polled) as reads, max(summary.reads_today) as reads_today by summary.stopped"),
	}
}

func (a *app) failures() []awscloudwatch.IWidget {
	return []awscloudwatch.IWidget{
		a.query("Runs that failed", 12, awscloudwatch.LogQueryVisualizationType_TABLE, runs,
			"filter ispresent(error)", "fields @timestamp, error, summary.run_id", "sort @timestamp desc", "limit 20"),
		a.query("Trouble with reads, by class", 12, awscloudwatch.LogQueryVisualizationType_TABLE, runs,
			"stats sum(summary.errors.http_5xx) as http_5xx, sum(summary.errors.http_4xx) as http_4xx, sum(summary.errors.timeout) as timeout, "+
				"sum(summary.errors.network) as network, sum(summary.errors.malformed) as malformed, sum(summary.errors.rate_limited) as rate_limited, "+
				"sum(summary.errors.unauthorized) as unauthorized, sum(summary.lost_leases) as lost_leases by bin(1h) as hour",
			"sort hour desc"),
	}
}

// runs picks the summary lines out of the log.
const runs = `filter message = "run"`

func graph(title string, width float64, metrics ...awscloudwatch.Metric) awscloudwatch.IWidget {
	left := make([]awscloudwatch.IMetric, len(metrics))
	for i, m := range metrics {
		left[i] = m
	}
	return awscloudwatch.NewGraphWidget(&awscloudwatch.GraphWidgetProps{
		Title: jsii.String(title), Width: jsii.Number(width), Height: jsii.Number(tall), Left: &left,
	})
}

// query asks the poller's log with Logs Insights.
func (a *app) query(title string, width float64, view awscloudwatch.LogQueryVisualizationType, lines ...string) awscloudwatch.IWidget {
	return awscloudwatch.NewLogQueryWidget(&awscloudwatch.LogQueryWidgetProps{
		Title: jsii.String(title), Width: jsii.Number(width), Height: jsii.Number(tall), View: view,
		LogGroupNames: &[]*string{a.poller.logGroup}, QueryLines: jsii.Strings(lines...),
	})
}
