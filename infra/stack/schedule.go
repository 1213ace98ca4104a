package stack

import (
	"github.com/aws/aws-cdk-go/awscdk/v2/awsiam"
	"github.com/aws/aws-cdk-go/awscdk/v2/awsscheduler"
	"github.com/aws/jsii-runtime-go"
)

// maxEventAge is how long a tick may wait in Scheduler and in Lambda's queue, in
// seconds: the shortest time that both accept. An older tick is useless, since the
// next one has come.
const maxEventAge = 60

// schedule invokes the poller once a minute. It passes no input, so that the
// poller gets Scheduler's event. A tick is never repeated: this retry policy covers
// the delivery into Lambda's queue, the function's settings what happens after it.
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
	// This includes the role's policy and the function's retry settings. Without
	// them the first ticks would be refused or repeated.
	schedule.Node().AddDependency(role, a.poller.Function)
	return schedule
}
