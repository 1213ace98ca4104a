package stack

import (
	"github.com/aws/aws-cdk-go/awscdk/v2/awsiam"
	"github.com/aws/aws-cdk-go/awscdk/v2/awsscheduler"
	"github.com/aws/jsii-runtime-go"
)

// maxEventAge is how long, in seconds, a tick may wait anywhere; the shortest
// that Scheduler and Lambda both take. An older one is of no use, since the
// next is there.
const maxEventAge = 60

// schedule ticks once a minute. It passes no input, so that the poller sees
// Scheduler's own event. Neither of the two retry layers tries again: this
// policy covers the delivery into Lambda's queue, the function's own settings
// what comes behind it.
func (a *app) schedule() awsscheduler.CfnSchedule {
	role := awsiam.NewRole(a.stack, jsii.String("ScheduleRole"), &awsiam.RoleProps{
		Description: jsii.String("Lets the schedule invoke " + a.functionName("poller")),
		AssumedBy: awsiam.NewServicePrincipal(jsii.String("scheduler.amazonaws.com"), &awsiam.ServicePrincipalOpts{
			Conditions: &map[string]any{"StringEquals": map[string]string{"aws:SourceAccount": *a.stack.Account()}},
		}),
	})
	allow(role, "InvokePoller", a.poller.FunctionArn(), nil, "lambda:InvokeFunction")
	schedule := awsscheduler.NewCfnSchedule(a.stack, jsii.String("Schedule"), &awsscheduler.CfnScheduleProps{
		Description:        jsii.String("One run of the poller a minute"),
		ScheduleExpression: jsii.String("rate(1 minute)"),
		State:              jsii.String("ENABLED"),
		FlexibleTimeWindow: &awsscheduler.CfnSchedule_FlexibleTimeWindowProperty{Mode: jsii.String("OFF")},
		Target: &awsscheduler.CfnSchedule_TargetProperty{
			Arn: a.poller.FunctionArn(), RoleArn: role.RoleArn(),
			RetryPolicy: &awsscheduler.CfnSchedule_RetryPolicyProperty{
				MaximumRetryAttempts: jsii.Number(0), MaximumEventAgeInSeconds: jsii.Number(maxEventAge),
			},
		},
	})
	// Their policy and their retry settings too, or the first ticks are refused
	// or tried again.
	schedule.Node().AddDependency(role, a.poller.Function)
	return schedule
}
