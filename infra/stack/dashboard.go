package stack

import (
	"slices"
	"strings"

	"github.com/aws/aws-cdk-go/awscdk/v2/awscloudwatch"
	"github.com/aws/aws-cdk-go/awscdk/v2/interfaces/interfacesawscloudwatch"
	"github.com/aws/jsii-runtime-go"

	"sumepoller/internal/telemetry"
)

// Sizes of widgets; a row is 24 wide.
const (
	rowWidth = 24
	height   = 6
)

// dashboard makes one page with a question above each row. Graphs show metrics;
// what has no metric is read from the summary line in the log of each run.
func (a *app) dashboard(alarms []interfacesawscloudwatch.IAlarmRef) {
	board := awscloudwatch.NewDashboard(a.stack, jsii.String("Dashboard"), &awscloudwatch.DashboardProps{
		DashboardName: jsii.String(a.settings.Name),
	})
	for _, row := range []struct {
		question string
		widgets  []awscloudwatch.IWidget
	}{
		{"Is it running?", a.running(alarms)},
		{"Is anything late?", a.late()},
		{"How did the jobs end?", a.outcomes()},
		{"How is the daily quota used?", a.quota()},
		{"What failed last?", a.errors()},
	} {
		board.AddWidgets(awscloudwatch.NewTextWidget(&awscloudwatch.TextWidgetProps{
			Markdown: jsii.String("## " + row.question), Width: jsii.Number(rowWidth), Height: jsii.Number(1),
			Background: awscloudwatch.TextWidgetBackground_TRANSPARENT,
		}))
		board.AddWidgets(row.widgets...)
	}
	if rest := a.notShown(); len(rest) > 0 {
		board.AddWidgets(graph("Other metrics", rowWidth, rest...))
	}
}

func (a *app) running(alarms []interfacesawscloudwatch.IAlarmRef) []awscloudwatch.IWidget {
	return []awscloudwatch.IWidget{
		awscloudwatch.NewAlarmStatusWidget(&awscloudwatch.AlarmStatusWidgetProps{
			Title: jsii.String("Alarms"), Alarms: &alarms, Width: jsii.Number(8), Height: jsii.Number(height),
		}),
		graph("Runs a minute", 8,
			lambdaMetric(a.poller, "Invocations", "Sum", 1), lambdaMetric(a.poller, "Errors", "Sum", 1), lambdaMetric(a.poller, "Throttles", "Sum", 1)),
		graph("Length of a run, ms", 8, lambdaMetric(a.poller, "Duration", "Average", 1), lambdaMetric(a.poller, "Duration", "Maximum", 1)),
	}
}

func (a *app) late() []awscloudwatch.IWidget {
	return []awscloudwatch.IWidget{
		graph("Lateness of reads, s", 8,
			a.shown(telemetry.LatenessSeconds, "p50", 5), a.shown(telemetry.LatenessSeconds, "p99", 5), a.shown(telemetry.LatenessSeconds, "Maximum", 5)),
		graph("Still due when a run ended", 8, a.shown(telemetry.DueJobs, "Maximum", 1), a.shown(telemetry.OldestDueSeconds, "Maximum", 1)),
		graph("Without a good answer; age of the oldest job, s", 8,
			a.shown(telemetry.FailingJobs, "Maximum", 5), a.shown(telemetry.StuckSubmissions, "Maximum", 5),
			a.shown(telemetry.OldestPendingSeconds, "Maximum", 5)),
	}
}

func (a *app) outcomes() []awscloudwatch.IWidget {
	return []awscloudwatch.IWidget{
		graph("Finished", 8, a.shown(telemetry.Finished, "Sum", 5), a.shown(telemetry.FinishedBadly, "Sum", 5)),
		a.query("Jobs finished, by state", 16, "stats "+sums("finished.", telemetry.FinishedStates())+", "+sums("", []string{"registered", "reopened"})+" by bin(1h) as hour",
			"sort hour desc"),
	}
}

func (a *app) quota() []awscloudwatch.IWidget {
	today := &awscloudwatch.GraphWidgetProps{
		Title: jsii.String("Reads today (UTC)"), Width: jsii.Number(8), Height: jsii.Number(height),
		Left: &[]awscloudwatch.IMetric{a.shown(telemetry.ReadsToday, "Maximum", 5)},
	}
	if limit := a.settings.ReadsPerDay; limit > 0 {
		today.LeftAnnotations = &[]*awscloudwatch.HorizontalAnnotation{
			{Label: jsii.String("daily limit"), Value: jsii.Number(limit)},
		}
	}
	return []awscloudwatch.IWidget{
		awscloudwatch.NewGraphWidget(today),
		graph("Reads", 8, a.shown(telemetry.Reads, "Sum", 5), a.shown(telemetry.ReadErrors, "Sum", 5), a.shown(telemetry.RateLimited, "Sum", 5)),
		a.query("Why runs ended", 8,
			"stats count(*) as runs, sum(summary.polled) as reads, max(summary.reads_today) as reads_today by summary.stopped"),
	}
}

func (a *app) errors() []awscloudwatch.IWidget {
	classes := []string{"http_5xx", "http_4xx", "timeout", "network", "malformed", "rate_limited", "unauthorized", "refused"}
	return []awscloudwatch.IWidget{
		a.query("Runs that failed", 12,
			"filter ispresent(error)", "fields @timestamp, error, summary.run_id", "sort @timestamp desc", "limit 20"),
		a.query("Read and write errors, by class", 12, "stats "+sums("errors.", classes)+", "+sums("", []string{"lost_leases"})+" by bin(1h) as hour",
			"sort hour desc"),
	}
}

// sums adds up counts of the summaries, each under its own name.
func sums(prefix string, names []string) string {
	parts := make([]string, len(names))
	for i, name := range names {
		parts[i] = "sum(summary." + prefix + name + ") as " + name
	}
	return strings.Join(parts, ", ")
}

func graph(title string, width float64, metrics ...awscloudwatch.IMetric) awscloudwatch.IWidget {
	return awscloudwatch.NewGraphWidget(&awscloudwatch.GraphWidgetProps{
		Title: jsii.String(title), Width: jsii.Number(width), Height: jsii.Number(height), Left: &metrics,
	})
}

// shown returns a metric of the poller and notes that a graph shows it.
func (a *app) shown(name, statistic string, minutes float64) awscloudwatch.IMetric {
	a.onGraphs = append(a.onGraphs, name)
	return a.metric(name, statistic, minutes)
}

// notShown returns the metrics that no graph shows, so that a new one is seen
// without a change here.
func (a *app) notShown() (rest []awscloudwatch.IMetric) {
	for _, name := range telemetry.Metrics() {
		if !slices.Contains(a.onGraphs, name) {
			rest = append(rest, a.metric(name, "Maximum", 5))
		}
	}
	return rest
}

// query reads the summary lines of the poller's log with Logs Insights.
func (a *app) query(title string, width float64, lines ...string) awscloudwatch.IWidget {
	return awscloudwatch.NewLogQueryWidget(&awscloudwatch.LogQueryWidgetProps{
		Title: jsii.String(title), Width: jsii.Number(width), Height: jsii.Number(height), View: awscloudwatch.LogQueryVisualizationType_TABLE,
		LogGroupNames: &[]*string{a.poller.logGroup}, QueryLines: jsii.Strings(append([]string{`filter message = "run"`}, lines...)...),
	})
}
